package proc

import (
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/eventgateway/gateway/infra/test/ports"
)

// The test binary is its own child: with CHILD set it is a small server.
func TestMain(m *testing.M) {
	switch os.Getenv("CHILD") {
	case "server":
		child()
	case "broken":
		fmt.Println("no such table: events")
		os.Exit(3)
	}
	os.Exit(m.Run())
}

func child() {
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	go func() {
		<-stop
		os.Exit(0)
	}()
	http.HandleFunc("/health", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "ok") })
	fmt.Println(http.ListenAndServe(os.Getenv("CHILD_ADDR"), nil))
	os.Exit(1)
}

func spec(t *testing.T, what string) Spec {
	t.Helper()
	addr := fmt.Sprintf("127.0.0.1:%d", ports.ForServer(t))
	return Spec{Path: os.Args[0], Dir: t.TempDir(), Addr: addr, Env: []string{"CHILD=" + what, "CHILD_ADDR=" + addr}}
}

func TestStartMeasureStop(t *testing.T) {
	c, err := Start(t.Context(), spec(t, "server"))
	if err != nil {
		t.Fatal(err)
	}
	if c.Ready <= 0 || c.Ready > readyTimeout {
		t.Errorf("Ready = %v", c.Ready)
	}
	if cpu, err := c.CPU(); err != nil || cpu <= 0 || cpu > time.Minute {
		t.Errorf("CPU() = %v, %v", cpu, err)
	}
	now, peak, err := c.Memory()
	if err != nil || now <= 1<<20 || peak < now {
		t.Errorf("Memory() = %d, %d, %v", now, peak, err)
	}
	for range 2 {
		if err := c.Stop(); err != nil {
			t.Errorf("Stop() = %v", err)
		}
	}
}

func TestStartShowsWhatABrokenChildSaid(t *testing.T) {
	_, err := Start(t.Context(), spec(t, "broken"))
	if err == nil || !strings.Contains(err.Error(), "exit status 3") || !strings.Contains(err.Error(), "no such table") {
		t.Errorf("Start() = %v, want its exit status and its output", err)
	}
}

func TestMemoryWantsBothLines(t *testing.T) {
	now, peak, err := memory([]byte("Name:\tx\nVmHWM:\t    2048 kB\nVmRSS:\t    1024 kB\n"))
	if now != 1<<20 || peak != 2<<20 || err != nil {
		t.Errorf("memory() = %d, %d, %v", now, peak, err)
	}
	if _, _, err := memory([]byte("Name:\tx\n")); err == nil {
		t.Error("memory() without the lines = nil, want an error")
	}
}
