package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// A screen shows the fight while it goes on: one line that changes on a terminal, and a plain
// line a second elsewhere.
type screen struct {
	out     io.Writer
	width   func() int // 0: not a terminal
	color   bool
	started time.Time
	lastly  time.Time // when it was last drawn
	turns   [languageCount]int
	holding [languageCount]bool
	fence   uint64
	tape    []language // who got it, in order
}

// ansiColor has the colours of the lanes in the timeline, from the terminal's 256.
var ansiColor = [languageCount]int{python: 68, node: 179, c: 173, golang: 73}

func newScreen(out io.Writer) *screen {
	now := time.Now()
	s := &screen{out: out, started: now, lastly: now, color: os.Getenv("NO_COLOR") == "", width: func() int { return 0 }}
	if file, ok := out.(*os.File); ok {
		s.width = func() int {
			size, err := unix.IoctlGetWinsize(int(file.Fd()), unix.TIOCGWINSZ)
			if err != nil {
				return 0
			}
			return max(int(size.Col), 40)
		}
	}
	if s.width() > 0 {
		fmt.Fprint(s.out, "\x1b[?25l") // hide the cursor
	}
	return s
}

// show takes an event, or nil when only time has passed, and draws what is worth drawing.
func (s *screen) show(e *event) {
	if e != nil {
		switch e.kind {
		case acquired:
			s.turns[e.language]++
			s.fence = max(s.fence, e.fence)
			s.tape = append(s.tape, e.language)
			s.holding = [languageCount]bool{} // another language's release may be read later than this
			s.holding[e.language] = true
		case released:
			s.holding[e.language] = false
		}
		return
	}
	now := time.Now()
	width := s.width()
	switch {
	case width > 0:
		fmt.Fprint(s.out, "\r", s.line(now, width), "\x1b[K")
	case now.Sub(s.lastly) >= time.Second:
		s.lastly = now
		fmt.Fprintf(s.out, "%5.1f s  %-13s  %s  token %d\n", now.Sub(s.started).Seconds(), s.holder(), s.score(), s.fence)
	}
}

func (s *screen) line(now time.Time, width int) string {
	head := fmt.Sprintf("%5.1f s  %-13s ", now.Sub(s.started).Seconds(), s.holder())
	tail := "  " + s.score()
	room := width - 1 - len(head) - len(tail)
	var tape strings.Builder
	for _, l := range s.tape[max(0, len(s.tape)-max(room, 0)):] {
		letter := l.String()[:1]
		if s.color {
			letter = fmt.Sprintf("\x1b[38;5;231;48;5;%dm%s\x1b[0m", ansiColor[l], letter)
		}
		tape.WriteString(letter)
	}
	return head + tape.String() + tail
}

func (s *screen) holder() string {
	for _, l := range languages {
		if s.holding[l] {
			return l.String() + " holds"
		}
	}
	return "nobody holds"
}

func (s *screen) score() string {
	parts := make([]string, len(languages))
	for i, l := range languages {
		parts[i] = fmt.Sprintf("%v %d", l, s.turns[l])
	}
	return strings.Join(parts, "  ")
}

func (s *screen) end() {
	if s.width() > 0 {
		fmt.Fprint(s.out, "\r\x1b[K\x1b[?25h")
	} else {
		fmt.Fprintln(s.out)
	}
}
