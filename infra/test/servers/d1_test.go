package servers_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/eventgateway/gateway/infra/test/servers"
	"github.com/google/go-cmp/cmp"
)

type answer struct {
	Status  int  `json:"-"`
	Success bool `json:"success"`
	Errors  []struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"errors"`
	Result []struct {
		Results struct {
			Columns []string `json:"columns"`
			Rows    [][]any  `json:"rows"`
		} `json:"results"`
		Meta struct {
			Changes int `json:"changes"`
		} `json:"meta"`
	} `json:"result"`
}

func apiURL(h servers.Hosted) string {
	return h.API + "/client/v4/accounts/" + h.Account + "/d1/database/" + h.Database + "/raw"
}

func post(url, token, body string) (a answer, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	return postContext(ctx, url, token, body)
}

func postContext(ctx context.Context, url, token, body string) (a answer, err error) {
	r, err := http.NewRequestWithContext(ctx, "POST", url, strings.NewReader(body))
	if err != nil {
		return a, err
	}
	r.Header.Set("Authorization", "Bearer "+token)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return a, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return a, err
	}
	a.Status = resp.StatusCode
	return a, json.NewDecoder(bytes.NewReader(b)).Decode(&a)
}

// faces are the two ways to a database.
func faces(h servers.Hosted) map[string]string {
	return map[string]string{"API": apiURL(h), "proxy": h.Endpoint + "/raw"}
}

func mustPost(t *testing.T, url string, h servers.Hosted, body string) answer {
	t.Helper()
	a, err := post(url, h.Token, body)
	if err != nil || a.Status != 200 || !a.Success {
		t.Fatalf("%s: %+v, %v", body, a, err)
	}
	return a
}

func TestD1(t *testing.T) {
	other := servers.D1(t)
	mustPost(t, apiURL(other), other, `{"sql":"CREATE TABLE t (id TEXT PRIMARY KEY, n INTEGER)"}`)
	for face := range faces(other) {
		t.Run(face, func(t *testing.T) {
			t.Parallel()
			h := servers.D1(t)
			url := faces(h)[face]
			mustPost(t, url, h, `{"sql":"CREATE TABLE t (id TEXT PRIMARY KEY, n INTEGER)"}`)
			a := mustPost(t, url, h, `{"batch":[
				{"sql":"INSERT INTO t VALUES (?, ?), (?, NULL)","params":["a","1","b"]},
				{"sql":"SELECT id, n FROM t ORDER BY id"},
				{"sql":"SELECT id, n FROM t WHERE id = ?","params":["c"]}]}`)
			if got := a.Result[0].Meta.Changes; got != 2 {
				t.Errorf("changes = %d, want 2", got)
			}
			if diff := cmp.Diff([][]any{{"a", 1.0}, {"b", nil}}, a.Result[1].Results.Rows); diff != "" {
				t.Errorf("rows (-want +got):\n%s", diff)
			}
			if got := a.Result[2].Results; len(got.Rows) != 0 || face == "API" && len(got.Columns) != 2 {
				t.Errorf("nothing found is %+v", got)
			}

			failed, err := post(url, h.Token, `{"batch":[{"sql":"INSERT INTO t VALUES ('c', 1)"},{"sql":"INSERT INTO t VALUES ('a', 1)"}]}`)
			if err != nil || failed.Status != 400 || failed.Errors[0].Code != 7500 ||
				!strings.Contains(failed.Errors[0].Message, "UNIQUE constraint failed: t.id: SQLITE_CONSTRAINT") {
				t.Errorf("a row that is there already: %+v, %v", failed, err)
			}
			a = mustPost(t, url, h, `{"sql":"SELECT COUNT(*) FROM t"}`)
			if got := a.Result[0].Results.Rows[0][0]; got != 2.0 {
				t.Errorf("%v rows after a batch that failed, want 2", got)
			}
		})
	}
}

func TestD1Refusals(t *testing.T) {
	h := servers.D1(t)
	api, proxy := apiURL(h), h.Endpoint+"/raw"
	params := func(n int) string {
		return `{"sql":"SELECT 1 WHERE 1 IN (?` + strings.Repeat(",?", n-1) + `)","params":["1"` + strings.Repeat(`,"1"`, n-1) + `]}`
	}
	for _, c := range []struct {
		name, url, token, body string
		status, code           int
	}{
		{"wrong token", api, "x", `{"sql":"SELECT 1"}`, 401, 10000},
		{"wrong token", proxy, "x", `{"sql":"SELECT 1"}`, 401, 10000},
		{"token without rights", api, h.WithoutRights(), `{"sql":"SELECT 1"}`, 403, 10000},
		{"unknown account", strings.Replace(api, h.Account, "nobody", 1), h.Token, `{"sql":"SELECT 1"}`, 403, 7403},
		{"unknown database", strings.Replace(api, h.Database, "nothing", 1), h.Token, `{"sql":"SELECT 1"}`, 404, 7404},
		{"not JSON", api, h.Token, `x`, 400, 7400},
		{"null", api, h.Token, `null`, 400, 7400},
		{"no SQL", api, h.Token, `{}`, 400, 7400},
		{"empty batch", api, h.Token, `{"batch":[]}`, 400, 7400},
		{"not SQL", api, h.Token, `{"sql":"SELEC"}`, 400, 7500},
		{"100 parameters", api, h.Token, params(100), 200, 0},
		{"101 parameters", api, h.Token, params(101), 400, 7500},
		{"a transaction", api, h.Token, `{"sql":"BEGIN"}`, 400, 7500},
	} {
		a, err := post(c.url, c.token, c.body)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		code := 0
		if len(a.Errors) > 0 {
			code = a.Errors[0].Code
		}
		if a.Status != c.status || code != c.code || a.Success != (c.status == 200) {
			t.Errorf("%s: %+v, want status %d, code %d", c.name, a, c.status, c.code)
		}
	}
}

func TestD1KillAndRestart(t *testing.T) {
	s, err := servers.StartD1(servers.D1Options{Databases: 2})
	servers.Check(t, err)
	defer s.Stop()
	h := s.Hosted(1)
	for _, sql := range []string{"CREATE TABLE kept (id INTEGER)", "INSERT INTO kept VALUES (1)"} {
		mustPost(t, apiURL(h), h, `{"sql":"`+sql+`"}`)
	}
	s.Kill()
	if a, err := post(apiURL(h), h.Token, `{"sql":"SELECT 1"}`); err == nil {
		t.Errorf("a killed server answers %+v", a)
	}
	for _, after := range []string{"kill", "good order"} {
		if err := s.Restart(); err != nil {
			t.Fatalf("restart after %s: %v", after, err)
		}
		if s.Hosted(1) != h {
			t.Errorf("restarted as %+v, was %+v", s.Hosted(1), h)
		}
		a := mustPost(t, h.Endpoint+"/raw", h, `{"sql":"SELECT COUNT(*) FROM kept"}`)
		if got := a.Result[0].Results.Rows[0][0]; got != 1.0 {
			t.Errorf("%v rows after %s, want 1", got, after)
		}
	}
}

func TestMoreD1DatabasesThanOneServerHas(t *testing.T) {
	seen := map[string]bool{}
	for range 70 {
		h := servers.D1(t)
		seen[h.Endpoint] = true
	}
	if len(seen) != 70 {
		t.Errorf("%d databases for 70 callers", len(seen))
	}
}
