package core_test

import (
	"go/ast"
	"strings"
	"testing"
)

// checkSorts checks that structs are sorted by core/order, whose package comment has the reason. It
// sees calls with a literal function; core/expr, where sorting is frequent, passes a method.
func checkSorts(t *testing.T, path string, f *ast.File) {
	for _, unshipped := range []string{"infra/", "store/storetest/", "cmd/bench/"} {
		if strings.HasPrefix(path, unshipped) {
			return
		}
	}
	for _, call := range structSorts(f) {
		t.Errorf("%s: slices.%s is compiled anew for each type of struct; call core/order", path, call)
	}
}

// structSorts returns the functions of package slices that sort structs in a file.
func structSorts(f *ast.File) (found []string) {
	ast.Inspect(f, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || len(call.Args) != 2 {
			return true
		}
		fun, ok := call.Fun.(*ast.SelectorExpr)
		if !ok || !isName(fun.X, "slices") || !sorts[fun.Sel.Name] {
			return true
		}
		if compare, ok := call.Args[1].(*ast.FuncLit); ok && !sharesCode(compare.Type.Params.List[0].Type) {
			found = append(found, fun.Sel.Name)
		}
		return true
	})
	return found
}

var sorts = map[string]bool{"SortFunc": true, "SortStableFunc": true, "SortedFunc": true, "SortedStableFunc": true}

// sharesCode reports whether a type of elements has a form that others have as well.
func sharesCode(element ast.Expr) bool {
	switch e := element.(type) {
	case *ast.StarExpr, *ast.ArrayType:
		return true
	case *ast.Ident:
		return e.Name == "string" || e.Name == "int"
	case *ast.SelectorExpr:
		return isName(e.X, "core") && (e.Sel.Name == "ID" || e.Sel.Name == "Lane")
	}
	return false
}

func isName(e ast.Expr, name string) bool {
	i, ok := e.(*ast.Ident)
	return ok && i.Name == name
}
