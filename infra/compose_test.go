package infra_test

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/eventgateway/gateway/core/config"
)

// A service is a service of a compose file, with the fields that the tests need.
type service struct {
	Image           string
	Build           struct{ Context, Dockerfile, Target string }
	Environment     map[string]string
	Volumes         []string
	Secrets         []string
	StopGracePeriod string         `yaml:"stop_grace_period"`
	DependsOn       map[string]any `yaml:"depends_on"`
}

type composed struct {
	Services         map[string]service
	Secrets, Volumes map[string]any
}

// compose merges files like docker compose, for the fields that the tests need.
func compose(t *testing.T, names ...string) composed {
	t.Helper()
	all := composed{Services: map[string]service{}, Secrets: map[string]any{}, Volumes: map[string]any{}}
	for _, name := range names {
		var file composed
		parse(t, filepath.Join("compose", name), &file)
		maps.Copy(all.Secrets, file.Secrets)
		maps.Copy(all.Volumes, file.Volumes)
		for name, s := range file.Services {
			under, ok := all.Services[name]
			if !ok {
				all.Services[name] = s
				continue
			}
			maps.Copy(under.Environment, s.Environment)
			under.Volumes = append(under.Volumes, s.Volumes...)
			all.Services[name] = under
		}
	}
	return all
}

// sets are the sets of files in the manual and in the files' own comments, with the expected
// database.
var sets = []struct {
	driver string
	files  []string
}{
	{"sqlite", []string{"compose.yaml"}},
	{"sqlite", []string{"compose.yaml", "compose.observability.yaml"}},
	{"postgres", []string{"compose.yaml", "compose.postgres.yaml"}},
	{"mysql", []string{"compose.yaml", "compose.mysql.yaml", "compose.observability.yaml"}},
}

// TestCompose: with a filled-in copy of .env.example the gateway starts without a warning, on
// the database of the files.
func TestCompose(t *testing.T) {
	for _, set := range sets {
		t.Run(strings.Join(set.files, "+"), func(t *testing.T) {
			all := compose(t, set.files...)
			cfg, environment := configOf(t, all.Services["gateway"])
			if cfg.Database.Driver != set.driver {
				t.Errorf("the database is %s, want %s", cfg.Database.Driver, set.driver)
			}
			for _, w := range cfg.Warnings() {
				t.Errorf("%s: %s", w.Path, w.Message)
			}
			if len(cfg.API.AuthToken) == 0 || len(cfg.API.MetricsAuthToken) == 0 {
				t.Error("the API or the metrics are open")
			}
			for name := range environment {
				if !variables(t)[name] && !strings.Contains(gatewayFiles(t), "${"+name) {
					t.Errorf("nothing reads %s", name)
				}
			}
			checkReferences(t, all)
		})
	}
}

// configOf loads the configuration of the gateway in a compose file, with the variables of its
// service.
func configOf(t *testing.T, s service) (*config.Config, map[string]string) {
	t.Helper()
	environment := map[string]string{}
	for name, value := range s.Environment {
		environment[name] = interpolate(t, value)
	}
	mounted := mounts(t, s)
	path := regexp.MustCompile(`ENV GATEWAY_CONFIG=/(\S+)`).FindSubmatch(read(t, dockerfile))
	if path == nil {
		t.Fatal("the image names no configuration")
	}
	cfg, err := config.Load(config.Options{
		FS: mounted, Path: string(path[1]), Env: environment["GATEWAY_ENV"],
		Lookup: func(name string) (string, bool) { v, ok := environment[name]; return v, ok },
	})
	if err != nil {
		t.Fatal(err)
	}
	return cfg, environment
}

// mounts returns the files of this folder that a service mounts. The configuration is mounted
// as a folder: if a single file is mounted, a container keeps the old file after an editor has
// replaced it.
func mounts(t *testing.T, s service) fs.FS {
	t.Helper()
	mounted := fstest.MapFS{}
	for _, v := range s.Volumes {
		from, to, _ := strings.Cut(v, ":")
		if !strings.HasPrefix(from, ".") {
			continue
		}
		to, _, _ = strings.Cut(to, ":")
		files, _ := filepath.Glob(filepath.Join("compose", from, "*"))
		if len(files) == 0 {
			t.Errorf("%s is no folder", from)
		}
		for _, f := range files {
			mounted[strings.TrimPrefix(to, "/")+"/"+filepath.Base(f)] = &fstest.MapFile{Data: read(t, f)}
		}
	}
	return mounted
}

var substitution = regexp.MustCompile(`\$\{(\w+)(:[-?][^}]*)?\}`)

// interpolate fills in the variables of .env, like compose. A variable without a default must
// be in .env.example.
func interpolate(t *testing.T, value string) string {
	t.Helper()
	offered := offers(t, "compose/.env.example")
	return substitution.ReplaceAllStringFunc(value, func(hole string) string {
		m := substitution.FindStringSubmatch(hole)
		if !offered[m[1]] {
			t.Errorf(".env.example does not name %s", m[1])
		}
		if fallback, ok := strings.CutPrefix(m[2], ":-"); ok {
			return fallback
		}
		if m[2] == "" {
			t.Errorf("%s has neither a default nor a word for those who forget it", hole)
		}
		if m[1] == "GATEWAY_SIGNING_SECRET" {
			return "whsec_" + strings.Repeat("0123456789abcdef", 4)
		}
		return strings.Repeat("0123456789abcdef", 4)
	})
}

// offers returns the variables of a file with lines NAME=value, including commented ones.
func offers(t *testing.T, name string) map[string]bool {
	t.Helper()
	all := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^#?([A-Z_]+)=`).FindAllSubmatch(read(t, name), -1) {
		all[string(m[1])] = true
	}
	return all
}

// checkReferences: each volume, secret and file that a service names exists.
func checkReferences(t *testing.T, all composed) {
	t.Helper()
	for name, s := range all.Services {
		for _, v := range s.Volumes {
			from, _, _ := strings.Cut(v, ":")
			_, named := all.Volumes[from]
			if _, err := os.Stat(filepath.Join("compose", from)); !named && err != nil {
				t.Errorf("%s: volume %s: %v", name, v, err)
			}
		}
		for _, secret := range s.Secrets {
			if _, ok := all.Secrets[secret]; !ok {
				t.Errorf("%s: there is no secret %s", name, secret)
			}
		}
		for other := range s.DependsOn {
			if _, ok := all.Services[other]; !ok {
				t.Errorf("%s: there is no service %s", name, other)
			}
		}
	}
	g := all.Services["gateway"]
	if _, err := os.Stat(filepath.Join("compose", g.Build.Context, g.Build.Dockerfile)); err != nil {
		t.Error(err)
	}
	if !strings.Contains(string(read(t, dockerfile)), "AS "+g.Build.Target+"\n") {
		t.Errorf("the Dockerfile has no stage %q", g.Build.Target)
	}
}

// drained returns the longest time that a gateway needs to stop.
func drained() time.Duration {
	return time.Duration(config.Default().Worker.DrainTimeoutSecs)*time.Second + 10*time.Second
}

// TestDrained: compose and systemd give a gateway enough time to finish its deliveries.
func TestDrained(t *testing.T) {
	grace, err := time.ParseDuration(compose(t, "compose.yaml").Services["gateway"].StopGracePeriod)
	if err != nil || grace != drained() {
		t.Errorf("stop_grace_period is %v, %v, want %v", grace, err, drained())
	}
	want := fmt.Sprintf("\nTimeoutStopSec=%.0f\n", drained().Seconds())
	if !strings.Contains(string(read(t, unit)), want) {
		t.Errorf("the unit lacks %q", want)
	}
}

// TestProxies: the proxies allow the longest wait of a consumer.
func TestProxies(t *testing.T) {
	const longest = 35 * time.Second // a wait of 30 s, and the answer
	for _, name := range []string{"proxy/Caddyfile", "proxy/nginx.conf"} {
		found := regexp.MustCompile(`(?:proxy_read_timeout|response_header_timeout) (\w+)`).FindSubmatch(read(t, name))
		if found == nil {
			t.Errorf("%s has no timeout", name)
			continue
		}
		if got, err := time.ParseDuration(string(found[1])); err != nil || got < longest {
			t.Errorf("%s waits for %v, %v, want %v or more", name, got, err, longest)
		}
	}
}

// gatewayFiles returns the text of all gateway configurations in this folder.
func gatewayFiles(t *testing.T) string {
	t.Helper()
	files, _ := filepath.Glob("compose/config/gateway*.yaml")
	var all strings.Builder
	for _, f := range append(files, starter) {
		all.Write(read(t, f))
	}
	return all.String()
}
