package main

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// peace is a history in which the lock kept its promises: n turns of at least 10 ms.
func peace(n int) []turn {
	random := rand.New(rand.NewPCG(1, 2))
	between := func(least, most int64) int64 { return (least + random.Int64N(most-least)) * int64(time.Millisecond) }
	since := [languageCount]int64{0, 1, 2, 3}
	now := int64(0)
	var history []turn
	for i := range n {
		t := turn{language: languages[(i+random.IntN(2))%len(languages)], fence: uint64(1000 + i)}
		now = max(now, since[t.language]) + between(1, 30)
		t.waiting, t.acquired = since[t.language], now
		now += between(10, 40)
		t.released = now
		since[t.language] = now + between(5, 80)
		history = append(history, t)
	}
	return history
}

func TestJudge(t *testing.T) {
	const n = 60
	broken := errors.New("the C program failed")
	for _, test := range []struct {
		name   string
		spoil  func(*[]turn, *int)
		left   []string
		failed []error
		says   string // in the report; "": everything is kept
	}{
		{name: "kept", spoil: func(*[]turn, *int) {}},
		{name: "lost update", spoil: func(_ *[]turn, counter *int) { *counter-- }, says: "FAIL  no lost update"},
		{name: "overlap", spoil: func(history *[]turn, _ *int) {
			(*history)[20].released = (*history)[21].acquired + int64(time.Millisecond)
		}, says: "held together for 1.0 ms"},
		{name: "long overlap", spoil: func(history *[]turn, _ *int) {
			(*history)[20].released = (*history)[30].acquired
		}, says: "9 times two held at once"},
		{name: "equal tokens", spoil: func(history *[]turn, _ *int) {
			(*history)[20].fence = (*history)[19].fence
		}, says: "got 1019 after"},
		{name: "key left", spoil: func(*[]turn, *int) {}, left: []string{"redlock-demo:x on node 0"}, says: "FAIL  nothing left"},
		{name: "worker failed", spoil: func(*[]turn, *int) {}, failed: []error{broken}, says: broken.Error()},
		{name: "starved", spoil: func(history *[]turn, counter *int) {
			*history = slices.DeleteFunc(*history, func(t turn) bool { return t.language == c })
			*counter = len(*history)
		}, says: "C never got the lock"},
		{name: "nothing", spoil: func(history *[]turn, counter *int) { *history, *counter = nil, 0 }, says: "Go never got the lock"},
	} {
		t.Run(test.name, func(t *testing.T) {
			history, counter := peace(n), n
			test.spoil(&history, &counter)
			v := judge(history, counter, test.left, test.failed, false)
			var report strings.Builder
			v.print(&report, "timeline.svg")
			if v.kept() != (test.says == "") {
				t.Errorf("kept: %v", v.kept())
			}
			if !strings.Contains(report.String(), test.says) || strings.Contains(report.String(), "FAIL") == (test.says == "") {
				t.Errorf("want %q in\n%s", test.says, report.String())
			}
		})
	}
}

func TestHandOffs(t *testing.T) {
	history := []turn{
		{language: golang, waiting: 0, acquired: 10, released: 100, fence: 1},
		{language: c, waiting: 50, acquired: 130, released: 200, fence: 2},       // waited at the release: 30
		{language: python, waiting: 220, acquired: 230, released: 300, fence: 3}, // nobody waited at the release: not counted
		{language: c, waiting: 290, acquired: 310, released: 320, fence: 4},      // 10, but Go had waited for longer
		{language: golang, waiting: 240, acquired: 325, released: 330, fence: 5}, // 5
	}
	v := judge(history, len(history), nil, nil, false)
	if want := []time.Duration{5, 10, 30}; !slices.Equal(v.handOffs, want) {
		t.Errorf("hand-offs: got %v, want %v", v.handOffs, want)
	}
	if v.passed != 1 {
		t.Errorf("passed over: got %d, want 1", v.passed)
	}
}

func TestQuantile(t *testing.T) {
	values := make([]time.Duration, 100)
	for i := range values {
		values[i] = time.Duration(i + 1)
	}
	for q, want := range map[float64]time.Duration{0: 1, 0.5: 50, 0.95: 95, 0.991: 100, 1: 100} {
		if got := quantile(values, q); got != want {
			t.Errorf("quantile %v: got %d, want %d", q, got, want)
		}
	}
}

func TestHistory(t *testing.T) {
	var events []event
	for _, line := range []struct {
		language language
		text     string
	}{
		{golang, "waiting 1"}, {golang, "acquired 5 7"}, {c, "waiting 2"},
		{c, "acquired 21 8"}, {golang, "released 20"}, // read later than what came after it
		{python, "waiting 3"}, {c, "released 30"}, {c, "waiting 31"}, {python, "acquired 40 9"}, // and then it died
	} {
		e, err := parseEvent(line.language, line.text)
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, e)
	}
	want := []turn{{golang, 1, 5, 20, 7}, {c, 2, 21, 30, 8}, {python, 3, 40, 40, 9}}
	if got := historyOf(events); !slices.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	for _, bad := range []string{"", "hello", "acquired 5", "acquired 5 -1", "released x", "waiting 1 2"} {
		if _, err := parseEvent(c, bad); err == nil {
			t.Errorf("%q was taken for an event", bad)
		}
	}
}

func TestTimeline(t *testing.T) {
	for _, n := range []int{0, 1, 60} {
		path := filepath.Join(t.TempDir(), "timeline.svg")
		if err := drawTimeline(peace(n), path); err != nil {
			t.Fatal(err)
		}
		svg, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for decoder := xml.NewDecoder(bytes.NewReader(svg)); ; {
			if _, err := decoder.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%d turns: %v", n, err)
			}
		}
		// A turn is a wait and two boxes; beyond these there is only the background.
		if got := bytes.Count(svg, []byte("<path")); got < 3*n {
			t.Errorf("%d turns: only %d paths", n, got)
		}
	}
}

// TestDemo runs the demo itself, on the programs that ./build.sh test has built.
func TestDemo(t *testing.T) {
	build := os.Getenv("REDLOCK_BUILD")
	if build == "" {
		if os.Getenv("REDLOCK_STRICT") != "" {
			t.Fatal("REDLOCK_BUILD is not set")
		}
		t.Skip("run by ./build.sh test, which builds the programs first")
	}
	s := setup{root: filepath.Join("..", ".."), build: build, output: t.TempDir(), python: "python3", node: "node", duration: 2 * time.Second}
	var out strings.Builder
	if err := run(t.Context(), s, &out); err != nil {
		t.Errorf("%v\n%s", err, out.String())
	}
	for _, line := range []string{"ok    no lost update", "ok    one at a time", "ok    fencing tokens", "ok    nothing left"} {
		if !strings.Contains(out.String(), line) {
			t.Errorf("the report lacks %q:\n%s", line, out.String())
		}
	}

	t.Run("interrupted", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		s.duration = time.Minute
		started := time.Now()
		var out strings.Builder
		if err := run(ctx, s, &out); err != nil {
			t.Errorf("%v\n%s", err, out.String())
		}
		if took := time.Since(started); took > 10*time.Second {
			t.Errorf("took %v to stop", took)
		}
	})
}
