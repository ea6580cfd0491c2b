package core_test

import (
	"go/ast"
	"go/token"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// unshipped are the folders whose packages are linked into no program that is started often.
var unshipped = []string{"infra/", "cmd/bench/", "store/storetest/"}

// checkExpressions compiles each expression that a program compiles when it first uses it, and
// reports variables whose expressions are compiled at each start.
func checkExpressions(t *testing.T, path string, f *ast.File) {
	for _, d := range f.Decls {
		_, variable := d.(*ast.GenDecl)
		ast.Inspect(d, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) != 1 {
				return true
			}
			switch calledName(call) {
			case "once.Regexp":
				if text := constantText(call.Args[0]); text == "" {
					t.Errorf("%s: the expression of once.Regexp is no constant text, so it cannot be checked here", path)
				} else if _, err := regexp.Compile(text); err != nil {
					t.Errorf("%s: %v", path, err)
				}
			case "regexp.MustCompile":
				if variable && !slices.ContainsFunc(unshipped, func(folder string) bool { return strings.HasPrefix(path, folder) }) {
					t.Errorf("%s: a variable is compiled at each start of the program; use once.Regexp", path)
				}
			}
			return true
		})
	}
}

// calledName returns the name of a called function of another package, such as once.Regexp.
func calledName(call *ast.CallExpr) string {
	function, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	of, ok := function.X.(*ast.Ident)
	if !ok {
		return ""
	}
	return of.Name + "." + function.Sel.Name
}

// constantText returns the value of a literal, or of literals joined by +; "" of anything else.
func constantText(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		if text, err := strconv.Unquote(e.Value); err == nil && e.Kind == token.STRING {
			return text
		}
	case *ast.BinaryExpr:
		if left, right := constantText(e.X), constantText(e.Y); e.Op == token.ADD && left != "" && right != "" {
			return left + right
		}
	}
	return ""
}
