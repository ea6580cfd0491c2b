//go:build linux

package e2e

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"image"
	"image/color"
	"image/png"
	"log/slog"
	"math"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/eventgateway/gateway/core"
	"github.com/eventgateway/gateway/core/config"
	gateways "github.com/eventgateway/gateway/core/gateway"
	"github.com/eventgateway/gateway/infra/test/golden"
	stores "github.com/eventgateway/gateway/store"
	"github.com/eventgateway/gateway/store/sqlite"
)

// picturesConfig is the gateway of a small shop.
const picturesConfig = `
console: true
server: {host: 127.0.0.1}
api:
  tokens: [{name: ada, role: admin, token: picture-picture-picture-picture}]
sources:
  stripe: {type: webhook, verify: stripe, secret: whsec_of-the-pictures-of-the-console}
  shop: {type: event}
  github: {type: webhook, verify: github, secret: secret-of-the-pictures-of-the-console}
  nightly: {type: cron, schedule: "0 3 * * *", timezone: Europe/Berlin}
handlers:
  billing: {source: stripe, events: ["invoice.*", "charge.*"], url: "https://billing.example.com/stripe"}
  crm: {source: stripe, events: ["customer.*"], url: "https://crm.example.com/hooks"}
  search-index: {source: shop, events: ["product.*"], url: "https://search.example.com/hooks"}
  deploy: {source: github, events: [push], url: "https://ci.example.com/hooks"}
  report: {source: nightly, url: "https://reports.example.com/nightly"}
queues:
  mail: {source: shop, events: [order.created, order.shipped]}
workflows:
  fulfil-order:
    source: shop
    events: [order.paid]
    steps: [{name: reserve, url: "https://stock.example.com/reserve"}, {name: pick, type: wait, seconds: 7200}, {name: ship, url: "https://stock.example.com/ship"}]
`

// picturesTime is what all clocks show.
var picturesTime = time.Date(2026, 11, 26, 15, 42, 30, 0, time.UTC)

// pictureFolder has the pictures, and the text of their page.
const pictureFolder = root + "/.github"

// TestConsolePictures takes the pictures of README anew, and fails if README shows other ones. What is on
// the page must be the same to the letter, as a screen reader finds it. The pictures must be alike: pixels
// differ between versions of browsers and fonts. With -update it writes both anew.
func TestConsolePictures(t *testing.T) {
	t.Parallel()
	chromium, modules := browserOf(t)
	folder := t.TempDir()
	seen := takePictures(t, modules, map[string]string{
		"browser": chromium, "console": pictured(t), "at": "#/?window=day", "token": "picture-picture-picture-picture",
		"now": picturesTime.Format(time.RFC3339), "folder": folder,
	})
	if seen["light"] != seen["dark"] || seen["light"] == "" {
		t.Errorf("light and dark show different things:\n%s", golden.Diff(seen["light"], seen["dark"]))
	}
	text := filepath.Join(pictureFolder, "console.txt")
	if golden.Updating() {
		golden.Write(t, text, []byte(seen["light"]+"\n"))
	}
	golden.Compare(t, text, read(t, text), seen["light"]+"\n")
	readme := read(t, root+"/README.md")
	for _, scheme := range []string{"light", "dark"} {
		name := "console-" + scheme + ".png"
		if !strings.Contains(readme, `".github/`+name+`"`) {
			t.Errorf("README.md does not show .github/%s", name)
		}
		taken := readPicture(t, filepath.Join(folder, scheme+".png"))
		path := filepath.Join(pictureFolder, name)
		if golden.Updating() {
			golden.Write(t, path, smallPicture(t, taken))
		}
		if d, at := difference(readPicture(t, path), taken); d > 16 {
			t.Errorf("%s does not show what the page shows: near %v they differ by %.0f of 255, want 16 at most; -update takes it anew", path, at, d)
		}
	}
}

// takePictures tells a browser to take the pictures, and returns what a screen reader finds, by light and dark.
func takePictures(t *testing.T, modules string, given map[string]string) (seen map[string]string) {
	t.Helper()
	argument, err := json.Marshal(given)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, "node", "pictures.mjs", string(argument))
	c.Dir, c.Env = modules, append(os.Environ(), "FONTCONFIG_FILE="+filepath.Join(modules, "fonts.conf"))
	var stderr strings.Builder
	c.Stderr = &stderr
	out, err := c.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, &stderr)
	}
	if err := json.Unmarshal(out, &seen); err != nil {
		t.Fatalf("%s: %v", out, err)
	}
	return seen
}

// pictured serves the gateway of the pictures, whose clock stands still, and returns the address of its
// console. No worker runs, so nothing changes what was stored.
func pictured(t *testing.T) string {
	t.Helper()
	c, err := config.Load(config.Options{FS: fstest.MapFS{"gateway.yaml": {Data: []byte(picturesConfig)}}, Path: "gateway.yaml"})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "gateway.db")
	conn, err := sqlite.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	clock := func() time.Time { return picturesTime }
	s := stores.New(conn, stores.SQLite, clock)
	t.Cleanup(func() { s.Close() })
	if err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	db := openLedger(t, path)
	storeDay(t, db.db)
	db.close()
	g, err := gateways.New(c, gateways.Deps{Store: s, Clock: clock, Log: slog.New(slog.DiscardHandler), Version: "1.0.0"})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(g.Handler())
	t.Cleanup(server.Close)
	return server.URL + "/console"
}

// storeDay stores the jobs and the counts of a day: busy from morning to evening, with a bad quarter of an
// hour of billing at noon, and a CRM that is down since a while.
func storeDay(t *testing.T, db *sql.DB) {
	t.Helper()
	tx, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	do := func(sql string, args ...any) {
		t.Helper()
		if _, err := tx.Exec(sql, args...); err != nil {
			t.Fatal(err)
		}
	}
	at := func(ago time.Duration) int64 { return picturesTime.Add(-ago).UnixMilli() }
	n := 0
	// jobs stores so many jobs of a lane, a second apart. due and finished are 0 for none.
	jobs := func(lane, status string, many, attempt int, due, finished int64, created time.Duration) {
		null := func(ms int64) any {
			if ms == 0 {
				return nil
			}
			return ms
		}
		do(`WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < ?1)
			INSERT INTO jobs (id, event_id, lane, job_key, status, attempt, max_attempts, due_at, lease, last_error, created_at, finished_at)
			SELECT printf('01M7000001%016d', ?2 + i), printf('01M7000000%016d', ?2 + i), ?3, NULL, ?4, ?5, 5, ?6 + i * 1000, NULL, '', ?7 + i * 1000, ?8 FROM n`,
			many, n, lane, status, attempt, null(due), at(created), null(finished))
		n += many
	}
	jobs("handler/billing", "completed", 5122, 1, 0, at(time.Hour), 20*time.Hour)
	jobs("handler/crm", "completed", 1904, 1, 0, at(time.Hour), 20*time.Hour)
	jobs("handler/search-index", "completed", 3280, 1, 0, at(time.Hour), 20*time.Hour)
	jobs("handler/deploy", "completed", 214, 1, 0, at(time.Hour), 20*time.Hour)
	jobs("queue/mail", "completed", 6410, 1, 0, at(time.Hour), 20*time.Hour)
	jobs("handler/billing", "dead", 3, 5, 0, at(3*time.Hour), 4*time.Hour)
	jobs("handler/crm", "retryable", 5, 2, at(-4*time.Minute), 0, 25*time.Minute)
	jobs("handler/crm", "available", 61, 0, at(24*time.Minute), 0, 24*time.Minute)
	jobs("handler/search-index", "available", 37, 0, at(18*time.Minute), 0, 18*time.Minute)
	jobs("queue/mail", "available", 12, 0, at(14*time.Second), 0, 14*time.Second)
	jobs("queue/mail", "running", 4, 1, at(-25*time.Second), 0, 20*time.Second)
	jobs("workflow/fulfil-order", "scheduled", 28, 0, at(-40*time.Minute), 0, time.Hour)
	do(`INSERT INTO gates (lane, failures, open_until, closed_at, moved_by, taker, base_us, next_us, opened_at, openings) VALUES ('handler/crm', 9, ?, 0, '', '', 0, 0, ?, 3)`, at(-4*time.Minute), at(24*time.Minute))
	do(`INSERT INTO gates (lane, failures, open_until, closed_at, moved_by, taker, base_us, next_us, held_since, held_until, hold_reason) VALUES ('handler/search-index', 0, 0, 0, '', '', 0, 0, ?, ?, 'reindexing')`, at(18*time.Minute), core.NoEnd.UnixMilli())
	for ago := 1; ago < 24*60; ago++ {
		minute := picturesTime.Add(-time.Duration(ago) * time.Minute).Truncate(time.Minute)
		hour := float64(minute.Hour()) + float64(minute.Minute())/60
		busy := 0.25 + math.Pow(math.Max(0, math.Sin((hour-5)/16*math.Pi)), 1.5) + 0.12*math.Sin(hour*7)*math.Sin(hour*2.3)
		for _, l := range []struct {
			lane      string
			much      float64
			fails     bool // at noon
			downSince int  // minutes ago; 0 for up
		}{
			{"source/stripe", 7, false, 0}, {"source/shop", 15, false, 0}, {"source/github", 0.4, false, 0},
			{"handler/billing", 5, true, 0}, {"handler/crm", 2, false, 25}, {"handler/search-index", 5, false, 18},
			{"handler/deploy", 0.4, false, 0}, {"queue/mail", 7, false, 0}, {"workflow/fulfil-order", 3, false, 0},
		} {
			// The fraction of an event is one in some minutes.
			many := int(math.Floor(l.much*busy*float64(ago)) - math.Floor(l.much*busy*float64(ago-1)))
			counts := [4]int{0, many, 0, 0}
			if strings.HasPrefix(l.lane, "source/") {
				counts = [4]int{many, 0, 0, 0}
			}
			if l.fails && hour > 12 && hour < 12.3 {
				counts[1], counts[2], counts[3] = many/2, many, ago%6/5
			}
			if ago <= l.downSince {
				counts[1] = 0
				if l.lane == "handler/crm" {
					counts[2] = 1
				}
			}
			do(`INSERT INTO minutes (at, lane, process, accepted, completed, failed, dead) VALUES (?, ?, 'p', ?, ?, ?, ?)`, minute.UnixMilli(), l.lane, counts[0], counts[1], counts[2], counts[3])
		}
	}
	for lane, counts := range map[string][2]int{"source/nightly": {1, 0}, "handler/report": {0, 1}} {
		do(`INSERT INTO minutes (at, lane, process, accepted, completed, failed, dead) VALUES (?, ?, 'p', ?, ?, 0, 0)`, time.Date(2026, 11, 26, 2, 0, 0, 0, time.UTC).UnixMilli(), lane, counts[0], counts[1])
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
}

func readPicture(t *testing.T, path string) image.Image {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	p, err := png.Decode(f)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return p
}

// smallPicture returns a picture as a PNG of at most 60 KB, with the 256 colours that it has most often.
// Other colours, which are those of the edges of letters, become the nearest of these.
func smallPicture(t *testing.T, p image.Image) []byte {
	t.Helper()
	often := map[color.RGBA]int{}
	pixels(p, func(_, _ int, c color.RGBA) { often[c]++ })
	var palette color.Palette
	for c := range often {
		palette = append(palette, c)
	}
	slices.SortFunc(palette, func(a, b color.Color) int {
		x, y := a.(color.RGBA), b.(color.RGBA)
		if d := often[y] - often[x]; d != 0 {
			return d
		}
		return bytes.Compare([]byte{x.R, x.G, x.B}, []byte{y.R, y.G, y.B})
	})
	small := image.NewPaletted(p.Bounds(), palette[:min(len(palette), 256)])
	pixels(p, func(x, y int, c color.RGBA) { small.Set(x, y, c) })
	var b bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&b, small); err != nil {
		t.Fatal(err)
	}
	if b.Len() > 60<<10 {
		t.Errorf("the picture has %d bytes, want 60 KiB at most", b.Len())
	}
	return b.Bytes()
}

func pixels(p image.Image, f func(x, y int, c color.RGBA)) {
	for y := p.Bounds().Min.Y; y < p.Bounds().Max.Y; y++ {
		for x := p.Bounds().Min.X; x < p.Bounds().Max.X; x++ {
			f(x, y, color.RGBAModel.Convert(p.At(x, y)).(color.RGBA))
		}
	}
}

// difference compares the mean colours of squares of 40 pixels, in which the shapes of letters count
// little. It returns the largest difference of a colour, from 0 to 255, and where it is.
func difference(a, b image.Image) (most float64, at image.Point) {
	if a.Bounds() != b.Bounds() {
		return 255, a.Bounds().Max
	}
	const side = 40
	sums := map[image.Point][3]float64{}
	add := func(p image.Image, sign float64) {
		pixels(p, func(x, y int, c color.RGBA) {
			k := image.Pt(x/side, y/side)
			s := sums[k]
			for i, v := range []uint8{c.R, c.G, c.B} {
				s[i] += sign * float64(v) / (side * side)
			}
			sums[k] = s
		})
	}
	add(a, 1)
	add(b, -1)
	for k, s := range sums {
		for _, d := range s {
			if d = math.Abs(d); d > most {
				most, at = d, k.Mul(side)
			}
		}
	}
	return most, at
}
