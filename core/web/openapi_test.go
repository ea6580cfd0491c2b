package web_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/go-chi/chi/v5"
	"github.com/rogpeppe/go-internal/txtar"
)

// described is the description that a gateway serves, read as OpenAPI.
func described(t *testing.T) *openapi3.T {
	t.Helper()
	reply := ask(newWorld(t).handler(), "GET", "/openapi.json", "")
	if reply.Code != 200 || reply.Header().Get("Content-Type") != "application/json" {
		t.Fatalf("GET /openapi.json: %d, %s", reply.Code, reply.Header().Get("Content-Type"))
	}
	doc, err := openapi3.NewLoader().LoadFromData(reply.Body.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

func TestDescriptionIsOpenAPI(t *testing.T) {
	if err := described(t).Validate(context.Background()); err != nil {
		t.Error(err)
	}
}

// The requests that succeed in the transcripts, and all replies, match the description.
func TestTranscriptsAreAsDescribed(t *testing.T) {
	doc := described(t)
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("transcripts: %v, %v", files, err)
	}
	seen := map[string]bool{}
	for _, file := range files {
		transcript, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for i, section := range transcript.Files {
			if i > 0 && section.Name == "reply" {
				request := transcript.Files[i-1]
				if strings.HasSuffix(request.Name, "verbatim") {
					continue
				}
				if err := compare(doc, request, section, seen); err != nil {
					t.Errorf("%s: %s: %v", filepath.Base(file), request.Name, err)
				}
			}
		}
	}
	for path, item := range doc.Paths.Map() {
		for method, operation := range item.Operations() {
			for status := range operation.Responses.Map() {
				if key := method + " " + path + " " + status; !seen[key] && (status[0] == '2') && method != "HEAD" && path != "/metrics" && path != "/openapi.json" && path != "/_echo" {
					t.Errorf("no transcript shows %s", key)
				}
			}
		}
	}
}

// compare returns how a request or its reply differs from the description.
func compare(doc *openapi3.T, request, reply txtar.File, seen map[string]bool) error {
	req, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(requestOf(request))))
	if err != nil {
		return nil // net/http answers it, not a route
	}
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil
	}
	req.Body = io.NopCloser(bytes.NewReader(body))
	status, header, content, err := parseReply(req, reply.Data)
	if err != nil {
		return err
	}
	input := routed(doc, req)
	if input == nil || status == http.StatusExpectationFailed { // which net/http answers as well
		if status < 400 && req.URL.Path != "/_echo" {
			return fmt.Errorf("%s %s is answered %d, but not described", req.Method, req.URL, status)
		}
		return nil
	}
	seen[fmt.Sprintf("%s %s %d", req.Method, input.Route.Path, status)] = true
	if status < 300 {
		if err := openapi3filter.ValidateRequest(context.Background(), input); err != nil {
			return fmt.Errorf("request: %w", err)
		}
	}
	if status == 400 && strings.HasPrefix(req.URL.Path, "/api/") && !mentions(content, beyond...) {
		if err := openapi3filter.ValidateRequest(context.Background(), input); err == nil {
			return fmt.Errorf("answered %s, though it is as described", content)
		}
	}
	if req.Method == "HEAD" {
		return nil
	}
	if header.Get("Content-Type") == "application/x-ndjson" {
		return compareLines(doc, content)
	}
	return openapi3filter.ValidateResponse(context.Background(), &openapi3filter.ResponseValidationInput{
		RequestValidationInput: input, Status: status, Header: header,
		Body: io.NopCloser(bytes.NewReader(content)), Options: &openapi3filter.Options{IncludeResponseStatus: true},
	})
}

// beyond are words of refusals whose reasons a schema cannot tell.
var beyond = []string{
	"the query is malformed", "must be given once", "since must be before until", "must be a duration from",
	"can be retried", "can be skipped", "only failed and canceled runs can be redriven", "the body must be a JSON object",
	"unknown parameter", "match: ", "for a replay only", "must not be above",
}

func mentions(text []byte, words ...string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return bytes.Contains(text, []byte(w)) })
}

// compareLines compares each line of an export with the description of an event.
func compareLines(doc *openapi3.T, content []byte) error {
	for line := range bytes.Lines(content) {
		var event any
		if err := json.Unmarshal(line, &event); err != nil {
			return err
		}
		if err := doc.Components.Schemas["Event"].Value.VisitJSON(event, openapi3.EnableJSONSchema2020()); err != nil {
			return fmt.Errorf("line %s: %w", line, err)
		}
	}
	return nil
}

// parseReply reads a reply as transcripts show it.
func parseReply(r *http.Request, text []byte) (status int, header http.Header, content []byte, err error) {
	head, body, _ := bytes.Cut(text, []byte("\n\n"))
	raw := append(bytes.ReplaceAll(bytes.TrimSuffix(head, []byte("\n")), []byte("\n"), []byte("\r\n")), "\r\n\r\n"...)
	reply, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(append(raw, body...))), r)
	if err != nil {
		return 0, nil, nil, err
	}
	content, err = io.ReadAll(reply.Body)
	return reply.StatusCode, reply.Header, content, err
}

// routed is a request at the operation that it is described to be for; nil if there is
// none.
func routed(doc *openapi3.T, r *http.Request) *openapi3filter.RequestValidationInput {
	router := chi.NewRouter()
	for path, item := range doc.Paths.Map() {
		for method := range item.Operations() {
			router.Method(method, path, http.NotFoundHandler())
		}
	}
	found, path := chi.NewRouteContext(), r.URL.EscapedPath()
	if !router.Match(found, r.Method, path) {
		return nil
	}
	params := map[string]string{}
	for i, key := range found.URLParams.Keys {
		params[key], _ = url.PathUnescape(found.URLParams.Values[i])
	}
	if strings.HasPrefix(path, "/api/") && r.Header.Get("Content-Type") == "" {
		r.Header.Set("Content-Type", "application/json") // the route reads every body as JSON
	}
	item := doc.Paths.Value(found.RoutePattern())
	return &openapi3filter.RequestValidationInput{
		Request: r, PathParams: params,
		Route:   &routers.Route{Spec: doc, Path: found.RoutePattern(), PathItem: item, Method: r.Method, Operation: item.GetOperation(r.Method)},
		Options: &openapi3filter.Options{AuthenticationFunc: openapi3filter.NoopAuthenticationFunc},
	}
}
