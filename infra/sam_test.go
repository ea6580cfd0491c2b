package infra_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestLint runs cfn-lint where it is installed. It knows each property of each resource.
func TestLint(t *testing.T) {
	lint, err := exec.LookPath("cfn-lint")
	if err != nil || exec.CommandContext(t.Context(), lint, "--version").Run() != nil {
		t.Log("cfn-lint is not installed here")
		return
	}
	args := []string{"--regions", "eu-west-1", "us-east-1", "--"}
	for path := range nestedIn(t, stack) {
		args = append(args, path)
	}
	if out, err := exec.CommandContext(t.Context(), lint, args...).CombinedOutput(); err != nil {
		t.Errorf("cfn-lint: %v\n%s", err, out)
	}
}

// TestTranslator runs SAM's translator where it is installed, and checks the resulting stack.
func TestTranslator(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "python3", "test/sam/expand.py", stack).Output()
	if err != nil {
		if complaint, ok := err.(*exec.ExitError); ok && !strings.Contains(string(complaint.Stderr), "ModuleNotFoundError") {
			t.Fatalf("%v\n%s", err, complaint.Stderr)
		}
		t.Logf("SAM's translator is not installed here: %v", err)
		return
	}
	var made struct {
		Resources map[string]struct {
			Type       string
			Properties map[string]any
		}
	}
	if err := json.Unmarshal(out, &made); err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for name, r := range made.Resources {
		count[r.Type]++
		if r.Type != "AWS::Lambda::Function" {
			continue
		}
		if got := fmt.Sprint(r.Properties["Handler"], r.Properties["Runtime"], r.Properties["Architectures"]); got != "bootstrapprovided.al2023[arm64]" {
			t.Errorf("%s is %s", name, got)
		}
		if role := fmt.Sprint(r.Properties["Role"]); !strings.Contains(role, strings.TrimSuffix(name, "Function")+"Role") {
			t.Errorf("%s has the role %s", name, role)
		}
	}
	want := map[string]int{
		"AWS::Lambda::Function": 4, "AWS::Scheduler::Schedule": 2, "AWS::Lambda::EventInvokeConfig": 2,
		"AWS::IAM::Role": 6, // two of them belong to the schedules
	}
	for kind, n := range want {
		if count[kind] != n {
			t.Errorf("there are %d of %s, want %d", count[kind], kind, n)
		}
	}
}

// TestAlarmsRead: the program writes the lines that alarms count, and alarms count all lines
// about jobs that became dead.
func TestAlarmsRead(t *testing.T) {
	source := string(read(t, "../core/telemetry/observe.go"))
	patterns := ""
	for _, r := range load(t, "sam/alarms.yaml").Resources {
		patterns += fmt.Sprint(r.Properties["FilterPattern"], "\n")
	}
	for _, m := range regexp.MustCompile(`\$\.(\w+) = ("[^"]+")`).FindAllStringSubmatch(patterns, -1) {
		if m[1] != "msg" || !strings.Contains(source, m[2]) {
			t.Errorf("no line has %s = %s", m[1], m[2])
		}
	}
	dead := regexp.MustCompile(`deliveryWords\{"[^"]+", "[^"]+", ("[^"]+")\}`).FindAllStringSubmatch(source, -1)
	for _, m := range dead {
		if !strings.Contains(patterns, m[1]) {
			t.Errorf("no alarm counts %s", m[1])
		}
	}
	if len(dead) < 4 {
		t.Errorf("%d messages tell of a death", len(dead))
	}
}

// fakeAWS plays the AWS command line. It stores each parameter in a file, reports whether a
// parameter exists, and records its calls.
const fakeAWS = `#!/bin/sh
echo "$@" >>"$FAKE/calls"
case $2 in
put-parameter) cat >"$FAKE/body"; name=$(sed 's/.*"Name": "[^"]*\/\([^"]*\)".*/\1/' "$FAKE/body"); mv "$FAKE/body" "$FAKE/$name.json" ;;
get-parameter) test -f "$FAKE/${4##*/}.json" ;;
get-parameters-by-path) printf '/gateway/D1_TOKEN\tt o=k$en\n/gateway/GATEWAY_API_TOKEN\tabc\n' ;;
esac
`

func secrets(t *testing.T, input string, args ...string) (store string, run func() (string, error)) {
	t.Helper()
	store = t.TempDir()
	bin := filepath.Join(store, "bin")
	if err := os.Mkdir(bin, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(bin, "aws"), []byte(fakeAWS), 0o700); err != nil {
		t.Fatal(err)
	}
	return store, func() (string, error) {
		cmd := exec.CommandContext(t.Context(), "sam/secrets", args...)
		cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "FAKE="+store)
		cmd.Stdin = strings.NewReader(input)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
}

// put returns the value stored under a name.
func put(t *testing.T, store, name string) (value string) {
	t.Helper()
	var p struct {
		Name, Type, Value string
		Overwrite         bool
	}
	if err := json.Unmarshal(read(t, filepath.Join(store, name+".json")), &p); err != nil {
		t.Fatal(err)
	}
	if p.Name != "/gateway/"+name || p.Type != "SecureString" || !p.Overwrite {
		t.Errorf("stored is %s of type %s", p.Name, p.Type)
	}
	return p.Value
}

// TestSecretsMadeUp: set makes random secrets once, with the required length.
func TestSecretsMadeUp(t *testing.T) {
	store, set := secrets(t, "", "set")
	if out, err := set(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var made []string
	for _, name := range []string{"GATEWAY_API_TOKEN", "GATEWAY_METRICS_TOKEN", "GATEWAY_QUEUE_KEY", "GATEWAY_SIGNING_SECRET"} {
		made = append(made, put(t, store, name))
	}
	if len(made[0]) != 64 || !strings.HasPrefix(made[3], "whsec_") || len(slices.Compact(slices.Sorted(slices.Values(made)))) != 4 {
		t.Errorf("made up are %q", made)
	}
	if out, err := set(); err != nil || put(t, store, "GATEWAY_API_TOKEN") != made[0] {
		t.Errorf("a second time: %v\n%s", err, out)
	}
	for _, secret := range made {
		if strings.Contains(string(read(t, filepath.Join(store, "calls"))), secret) {
			t.Error("a secret is among the arguments of a program")
		}
	}
}

// TestSecretsGiven: a given value is stored unchanged, and a command gets the stored values.
func TestSecretsGiven(t *testing.T) {
	const value = `a "quoted\ $secret`
	store, set := secrets(t, value+"\n", "set", "D1_TOKEN")
	if out, err := set(); err != nil || strings.Contains(out, "quoted") || put(t, store, "D1_TOKEN") != value {
		t.Errorf("%v\n%s", err, out)
	}
	_, empty := secrets(t, "\n", "set", "D1_TOKEN")
	if out, err := empty(); err == nil || !strings.Contains(out, "D1_TOKEN is empty") {
		t.Errorf("an empty one: %v\n%s", err, out)
	}
	_, run := secrets(t, "", "run", "sh", "-c", `echo "$D1_TOKEN, $GATEWAY_API_TOKEN"`)
	if out, err := run(); err != nil || out != "t o=k$en, abc\n" {
		t.Errorf("%v\n%s", err, out)
	}
	_, usage := secrets(t, "")
	if out, err := usage(); err == nil || !strings.HasPrefix(out, "  infra/sam/secrets set ") {
		t.Errorf("without arguments: %v\n%s", err, out)
	}
}
