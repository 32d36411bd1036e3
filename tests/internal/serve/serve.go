// Package serve is the protocol of tests/drivers/README.md as a driver written in Go speaks it.
package serve

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/libredlock/libredlock/tests/internal/line"
)

// Server reads requests and writes replies.
type Server struct {
	writing sync.Mutex
	out     io.Writer

	mu      sync.Mutex
	cancels map[string]context.CancelFunc // of the requests that are not answered, by id
}

// New makes a server that writes to out and tells first of all what it is.
func New(out io.Writer, language string, lacks ...string) *Server {
	s := &Server{out: out, cancels: map[string]context.CancelFunc{}}
	ready := &line.Line{ID: line.Unasked, Word: "ready"}
	ready.Add("language", language)
	ready.Add("lacks", strings.Join(lacks, ","))
	s.Send(ready)
	return s
}

// Send writes a line.
func (s *Server) Send(l *line.Line) {
	s.writing.Lock()
	defer s.writing.Unlock()
	fmt.Fprintln(s.out, l) // if it fails the runner is gone, and the input ends
}

// Run has the requests that it reads from in answered until in ends, each in a goroutine of its own. The context
// of a request ends when it is cancelled.
func (s *Server) Run(in io.Reader, answer func(context.Context, *line.Line) *line.Line) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		request, err := line.Parse(lines.Text())
		if err != nil {
			return err
		}
		if request.Word == "cancel" {
			s.end(request.Get("request"))
			s.Send(&line.Line{ID: request.ID, Word: "OK"})
			continue
		}
		ctx, cancel := context.WithCancel(context.Background())
		s.mu.Lock()
		s.cancels[request.ID] = cancel // before the next line is read: it may be the cancel
		s.mu.Unlock()
		go func() {
			defer s.end(request.ID)
			s.Send(answer(ctx, request))
		}()
	}
	return lines.Err()
}

// end ends the context of a request, unless that was answered already.
func (s *Server) end(id string) {
	s.mu.Lock()
	cancel := s.cancels[id]
	delete(s.cancels, id)
	s.mu.Unlock()
	if cancel != nil {
		cancel()
	}
}
