package reference
import ("testing";"syscall";"path/filepath";"time";"github.com/eventgateway/gateway/cmd/bench/internal/sink")
func cpu() float64 { var r syscall.Rusage; syscall.Getrusage(0,&r); return float64(r.Utime.Nano()+r.Stime.Nano())/1e3 }
func TestZZ(t *testing.T){
 for range 3 {
 db := filepath.Join(t.TempDir(), "ref.db")
 const n=20000
 s := receive(t, sink.Config{Events: n, Key: key})
 p := start(t, db, s.URL(), 32)
 t0:=time.Now(); c:=cpu()
 submit(t,p,0,n)
 s.Wait(t.Context(), n, 3*time.Second)
 t.Logf("%.0f/s  cpu %.0f us/event  turns %d claims-empty %d posts-batches %d", float64(n)/time.Since(t0).Seconds(), (cpu()-c)/n, turns, empties, batches)
 turns, empties, batches = 0,0,0
 stop(t,p)
 }
}
