package web

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Reasons has the reason of each verdict in this package. A reason that it lacks would have no
// series in the metrics before its first request.
func TestReasons(t *testing.T) {
	var want []string
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			field, ok := n.(*ast.KeyValueExpr)
			if key, named := (*ast.Ident)(nil), false; ok {
				if key, named = field.Key.(*ast.Ident); named && key.Name == "reason" {
					text, err := strconv.Unquote(field.Value.(*ast.BasicLit).Value)
					if err != nil {
						t.Fatal(err)
					}
					want = append(want, text)
				}
			}
			return true
		})
	}
	got := Reasons()
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Reasons (-in the code +got):\n%s", diff)
	}
}
