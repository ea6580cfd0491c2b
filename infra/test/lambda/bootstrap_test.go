//go:build linux

package lambda

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	runtime "github.com/aws/aws-lambda-go/lambda"
)

// TestMain runs the tests. In a copy, it is the bootstrap program of the tests instead.
func TestMain(m *testing.M) {
	if os.Getenv("AWS_LAMBDA_RUNTIME_API") == "" {
		os.Exit(m.Run())
	}
	bootstrap()
}

// An order is the payload with an instruction for the bootstrap program.
type order struct {
	Do string `json:"do"`
}

// background counts milliseconds in which the program ran.
var background atomic.Int64

// hang never returns. Because of the ticker the Go runtime does not call it a deadlock, for which it
// ends programs without cgo.
func hang() {
	for range time.Tick(time.Hour) {
	}
}

func bootstrap() {
	switch os.Getenv("INIT") {
	case "exit":
		fmt.Println("ends in init")
		os.Exit(3)
	case "hang":
		fmt.Println("hangs in init")
		hang()
	}
	go func() {
		for range time.Tick(time.Millisecond) {
			background.Add(1)
		}
	}()
	var options []runtime.Option
	if os.Getenv("SIGTERM") != "" {
		options = append(options, runtime.WithEnableSIGTERM(func() {
			fmt.Println("told to end")
			if os.Getenv("SIGTERM") == "end" {
				os.Exit(0)
			}
		}))
	}
	runtime.StartWithOptions(obey, options...)
}

func obey(ctx context.Context, payload json.RawMessage) (any, error) {
	var o order
	_ = json.Unmarshal(payload, &o) // other payloads are echoed
	switch o.Do {
	case "fail":
		return nil, errors.New("as ordered")
	case "panic":
		panic("as ordered")
	case "exit":
		os.Exit(1)
	case "hang":
		hang()
	case "large":
		return strings.Repeat("x", maxSync), nil
	case "count":
		return background.Load(), nil
	case "environment":
		return os.Environ(), nil
	case "rest":
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
		}
		return os.Getpid(), nil
	}
	if _, ok := os.LookupEnv("ANSWER"); ok {
		return json.RawMessage(os.Getenv("ANSWER")), nil
	}
	return payload, nil
}

// deploy adds a function that runs this program.
func deploy(t *testing.T, o Options) *Function {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if o.Name == "" {
		o.Name = "test"
	}
	o.Bootstrap = path
	return New(t).Add(o)
}

// do sends an order and requires the error of the result.
func do(t *testing.T, f *Function, what, want string) Result {
	t.Helper()
	r := f.Invoke([]byte(`{"do":"` + what + `"}`))
	if r.Error != want {
		t.Fatalf("%s: error %q, payload %s, want error %q", what, r.Error, r.Payload, want)
	}
	return r
}
