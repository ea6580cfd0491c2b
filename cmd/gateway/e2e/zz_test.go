//go:build linux
package e2e
import ("testing";"time";"os")
func TestZZ(t *testing.T) {
	r := newReceiver(t)
	d := 0*time.Millisecond
	if os.Getenv("SLOW") != "" { d = 5*time.Millisecond }
	r.on("/load", r.taking(time.Hour))
	g := newGateway(t, killConfig, r)
	g.env = append(g.env, "GATEWAY_LOG=warn")
	g.start()
	l := newLoad(g, r, pooled)
	l.start(16)
	eventually(t, 60*time.Second, "load", func() bool { a, _ := l.counts(); return a > 15000 })
	l.end()
	g.kill()
	if d > 0 { r.on("/load", r.taking(d)) } else { r.on("/load", nil) }
	b := time.Now()
	g.start()
	l.settle(60*time.Second)
	a, _ := l.counts()
	t.Logf("%d in %v = %.0f/s", a, time.Since(b), float64(a)/time.Since(b).Seconds())
}
