package core_test

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// outside are the folders and files that may make calls without core/egress, with the reason.
// TestHouse reports an entry that makes no call.
var outside = []*struct {
	path, why string
	found     bool
}{
	{path: "core/egress/", why: "it contains the address guard"},
	{path: "store/hosted/", why: "it calls only the configured database, as every driver does"},
	{path: "cmd/gateway/internal/remote/", why: "it calls only the gateway that the user names"},
	{path: "core/telemetry/traces/", why: "it calls only the collector that the environment names"},
	{path: "functions/internal/boot/nudge.go", why: "it calls only Lambda in the function's own region"},
	{path: "functions/internal/boot/secrets.go", why: "it calls only the extension on the same machine"},
	{path: "core/config/remote/cloud/", why: "it passes a client of core/egress to the providers' libraries"},
	{path: "cmd/bench/", why: "it measures servers that it started, and is not part of the program"},
	{path: "infra/test/", why: "it is not part of the program"},
}

// outbound are the functions and types that make calls and that only core/egress may use, by
// package. A name that ends in * stands for every name with this beginning.
var outbound = map[string][]string{
	"net":                    {"Dial*"},
	"net/http":               {"DefaultClient", "DefaultTransport", "Get", "Head", "Post*", "Client", "Transport"},
	"net/http/httputil":      {"*"}, // a proxy without a transport has the default one
	"net/rpc":                {"*"},
	"net/rpc/jsonrpc":        {"*"},
	"net/smtp":               {"*"},
	"log/syslog":             {"*"},
	"crypto/tls":             {"Dial*"},
	"syscall":                {"Connect"},
	"golang.org/x/sys/unix":  {"Connect*"},
	"golang.org/x/net/http2": {"Transport"},
	"golang.org/x/net/proxy": {"*"},

	"google.golang.org/grpc":                {"NewClient", "Dial*"},
	"github.com/hashicorp/go-cleanhttp":     {"*"},
	"github.com/hashicorp/go-retryablehttp": {"*"},

	"gocloud.dev/blob":                        {"Open*"}, // opens a bucket with credentials and without the guard
	"github.com/aws/aws-sdk-go-v2/service/s3": {"New*"},

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp": {"New*"},
}

// passedTypes are types whose pointers may be named anywhere: a function that receives a
// client of core/egress has not made one.
var passedTypes = []string{"http.Client", "http.Transport", "net.Dialer", "tls.Dialer", "http2.Transport"}

func checkOutbound(t *testing.T, file string, f *ast.File) {
	found := outboundIn(f)
	for _, o := range outside {
		if strings.HasPrefix(file, o.path) {
			o.found = o.found || len(found) > 0
			return
		}
	}
	for _, what := range found {
		t.Errorf("%s uses %s; calls to the outside go through core/egress", file, what)
	}
}

// outboundIn returns the names of outbound that a file uses, under any import name.
func outboundIn(f *ast.File) (found []string) {
	packages := map[string]string{} // by the file's name for them
	for _, spec := range f.Imports {
		of, _ := strconv.Unquote(spec.Path.Value)
		if outbound[of] == nil {
			continue
		}
		name := strings.TrimPrefix(path.Base(of), "go-")
		if spec.Name != nil {
			name = spec.Name.Name
		}
		switch {
		case name == "." || name == "_":
			found = append(found, fmt.Sprintf("%s as %s", of, name))
		default:
			packages[name] = of
		}
	}
	pointers := map[ast.Node]bool{}
	ast.Inspect(f, func(n ast.Node) bool {
		if star, ok := n.(*ast.StarExpr); ok {
			pointers[star.X] = true
		}
		if sel, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := sel.X.(*ast.Ident); ok && isOutbound(packages[x.Name], sel.Sel.Name, pointers[sel]) {
				found = append(found, packages[x.Name]+"."+sel.Sel.Name)
			}
		}
		return true
	})
	return found
}

func isOutbound(of, name string, pointer bool) bool {
	if pointer && slices.Contains(passedTypes, path.Base(of)+"."+name) {
		return false
	}
	return slices.ContainsFunc(outbound[of], func(pattern string) bool {
		prefix, all := strings.CutSuffix(pattern, "*")
		return name == pattern || all && strings.HasPrefix(name, prefix)
	})
}

// TestOutboundIn: the rule finds every forbidden use, and nothing else.
func TestOutboundIn(t *testing.T) {
	for _, c := range []struct{ imports, code, want string }{
		{`"net/http"`, `http.DefaultClient.Do(r)`, "net/http.DefaultClient"},
		{`"net/http"`, `http.Get(u)`, "net/http.Get"},
		{`"net/http"`, `http.Head(u)`, "net/http.Head"},
		{`"net/http"`, `http.Post(u, t, b)`, "net/http.Post"},
		{`"net/http"`, `http.PostForm(u, nil)`, "net/http.PostForm"},
		{`"net/http"`, `c := http.Client{}`, "net/http.Client"},
		{`"net/http"`, `c := &http.Client{Timeout: 1}`, "net/http.Client"},
		{`"net/http"`, `c := new(http.Client)`, "net/http.Client"},
		{`"net/http"`, `var c http.Client`, "net/http.Client"},
		{`"net/http"`, `var c struct{ http.Client }`, "net/http.Client"},
		{`"net/http"`, `get := http.Get`, "net/http.Get"},
		{`"net/http"`, `c := &http.Transport{}`, "net/http.Transport"},
		{`"net/http"`, `http.DefaultTransport.(*http.Transport).Clone()`, "net/http.DefaultTransport"},
		{`web "net/http"`, `web.Get(u)`, "net/http.Get"},
		{`. "net/http"`, `Get(u)`, "net/http as ."},
		{`"net/http/httputil"`, `httputil.NewSingleHostReverseProxy(u)`, "net/http/httputil.NewSingleHostReverseProxy"},
		{`"net"`, `net.Dial("tcp", a)`, "net.Dial"},
		{`"net"`, `net.DialTimeout("tcp", a, 1)`, "net.DialTimeout"},
		{`"net"`, `net.DialTCP("tcp", nil, a)`, "net.DialTCP"},
		{`"net"`, `(&net.Dialer{}).Dial("tcp", a)`, "net.Dialer"},
		{`"net"`, `new(net.Dialer).Dial("tcp", a)`, "net.Dialer"},
		{`"net"`, `var d net.Dialer`, "net.Dialer"},
		{`"crypto/tls"`, `tls.Dial("tcp", a, nil)`, "crypto/tls.Dial"},
		{`"crypto/tls"`, `tls.DialWithDialer(nil, "tcp", a, nil)`, "crypto/tls.DialWithDialer"},
		{`"crypto/tls"`, `d := tls.Dialer{}`, "crypto/tls.Dialer"},
		{`"syscall"`, `syscall.Connect(fd, a)`, "syscall.Connect"},
		{`"net/smtp"`, `smtp.SendMail(a, nil, f, to, m)`, "net/smtp.SendMail"},
		{`"gocloud.dev/blob"`, `blob.OpenBucket(c, u)`, "gocloud.dev/blob.OpenBucket"},
		{`"github.com/aws/aws-sdk-go-v2/service/s3"`, `s3.New(o)`, "github.com/aws/aws-sdk-go-v2/service/s3.New"},
		{`"google.golang.org/grpc"`, `grpc.NewClient(u)`, "google.golang.org/grpc.NewClient"},
		{`"google.golang.org/grpc"`, `grpc.Dial(u)`, "google.golang.org/grpc.Dial"},
		{`"google.golang.org/grpc"`, `grpc.DialContext(c, u)`, "google.golang.org/grpc.DialContext"},
		{`"github.com/hashicorp/go-retryablehttp"`, `retryablehttp.NewClient()`, "github.com/hashicorp/go-retryablehttp.NewClient"},
		{`"github.com/hashicorp/go-cleanhttp"`, `cleanhttp.DefaultClient()`, "github.com/hashicorp/go-cleanhttp.DefaultClient"},

		{`"net/http"`, `var c *http.Client`, ""},
		{`"net/http"`, `func(c *http.Client, t *http.Transport) {}(nil, nil)`, ""},
		{`"net/http"`, `http.Error(w, "", http.StatusOK); http.NewRequest("", "", nil)`, ""},
		{`"net"`, `net.Listen("tcp", a); net.ParseIP(a); var d *net.Dialer`, ""},
		{`"crypto/tls"`, `c := tls.Config{}`, ""},
		{`"example.com/http"`, `http.Get(u)`, ""},
		{`"google.golang.org/grpc"`, `grpc.NewServer()`, ""},
	} {
		src := fmt.Sprintf("package p\nimport %s\nfunc f() {\n%s\n}\n", c.imports, c.code)
		f, err := parser.ParseFile(token.NewFileSet(), "p.go", src, parser.SkipObjectResolution)
		if err != nil {
			t.Errorf("%s: %v", c.code, err)
			continue
		}
		if got := strings.Join(outboundIn(f), ", "); got != c.want {
			t.Errorf("%s, %s: found %s, want %s", c.imports, c.code, cmp.Or(got, "nothing"), cmp.Or(c.want, "nothing"))
		}
	}
}
