package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// A worker is one of the programs that fight. It gets the nodes in REDLOCK_NODES, the lock's name
// and the counter's file as arguments, prints events, and ends when its standard input does: so
// it stops, and releases, whatever becomes of this process, kill -9 included.
type worker struct {
	language language
	command  []string
	env      []string
}

// patience is how long a worker may take to end once its input has: its own turn, those of the
// others, and the lease of one that died while it held.
const patience = 8 * time.Second

// startLimit is how long the workers may take until all of them want the lock.
const startLimit = 15 * time.Second

// race runs the workers for a while, counted from when all of them want the lock, or until ctx ends or
// one fails, and returns what they printed. show is called with every event, and often in between with nil.
func race(ctx context.Context, workers []worker, duration time.Duration, show func(*event)) (events []event, failures []error) {
	lines := make(chan event)
	ended := make(chan error)
	var inputs []io.Closer
	for _, w := range workers {
		input, err := w.start(lines, ended)
		if err != nil {
			failures = append(failures, err)
			break
		}
		inputs = append(inputs, input)
	}

	running := len(inputs)
	stop := func() {
		for _, input := range inputs {
			_ = input.Close()
		}
		inputs = nil
	}
	if len(failures) > 0 {
		stop()
	}
	timeUp := time.After(startLimit)
	seen := map[language]bool{}
	frame := time.NewTicker(50 * time.Millisecond)
	defer frame.Stop()
	interrupted := ctx.Done()
	for running > 0 {
		select {
		case e := <-lines:
			events = append(events, e)
			show(&e)
			if !seen[e.language] {
				seen[e.language] = true
				if len(seen) == len(workers) {
					timeUp = time.After(duration)
				}
			}
		case err := <-ended:
			running--
			if err != nil {
				failures = append(failures, err)
				stop()
			}
		case <-timeUp:
			stop()
		case <-interrupted:
			interrupted = nil
			stop()
		case <-frame.C:
			show(nil)
		}
	}
	return events, failures
}

// start runs the worker in a process group of its own, so that a Ctrl-C reaches it only by the end of its
// input, after which it may still finish its turn. One error, or nil, is sent to ended when all is over.
func (w worker) start(lines chan<- event, ended chan<- error) (input io.Closer, err error) {
	command := exec.Command(w.command[0], w.command[1:]...)
	command.Env = append(os.Environ(), w.env...)
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var complaint bytes.Buffer
	command.Stderr = &complaint
	stdin, err := command.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("cannot start the %v program: %w", w.language, err)
	}
	go func() {
		var failures []error
		scanner := bufio.NewScanner(stdout)
		for scanner.Scan() {
			e, err := parseEvent(w.language, scanner.Text())
			if err != nil {
				failures = append(failures, err)
				continue
			}
			lines <- e
		}
		if err := command.Wait(); err != nil {
			failures = append(failures, fmt.Errorf("the %v program failed: %w", w.language, err))
			if text := bytes.TrimSpace(complaint.Bytes()); len(text) > 0 {
				failures = append(failures, errors.New(string(text)))
			}
		}
		ended <- errors.Join(failures...)
	}()
	return &leash{stdin, command.Process}, nil
}

// A leash ends a worker: kindly, then, after patience, by force.
type leash struct {
	input   io.Closer
	process *os.Process
}

func (l *leash) Close() error {
	time.AfterFunc(patience, func() { _ = l.process.Kill() }) // no harm if it has ended
	return l.input.Close()
}
