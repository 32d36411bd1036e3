package main

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// result is what one contestant did in one contest.
type result struct {
	contest
	contestant
	took     []time.Duration // of each hand-off
	commands float64         // sent by clients for a hand-off
	idle     float64         // sent a second for each waiter while nothing happens; negative if not counted
}

// The orders to workers, and where the state has the number of acquisitions; see tests/peers/go/handoff.
const (
	orderHold = 1
	orderRun  = 2
	acquired  = 16
)

// play lets a contestant play a contest.
func play(shop workshop, s *server, c contest, who contestant, p plan) (result, error) {
	r := result{contest: c, contestant: who, idle: -1}
	if err := s.client.FlushAll(s.ctx).Err(); err != nil {
		return r, err
	}
	t, err := sitDown(shop, s, c, who)
	if err != nil {
		return r, errors.Join(err, t.rise())
	}
	err = t.measure(&r, s, p)
	return r, errors.Join(err, t.rise())
}

// A table is a contest that is being played.
type table struct {
	dir       string
	state     *os.File
	log       string
	processes []*process
	broken    chan error
}

type process struct {
	cmd   *exec.Cmd
	input io.Closer
}

// sitDown starts the processes and waits until all have connected.
func sitDown(shop workshop, s *server, c contest, who contestant) (*table, error) {
	t := &table{}
	var err error
	if t.dir, err = os.MkdirTemp("", "handoff"); err != nil {
		return t, err
	}
	state := filepath.Join(t.dir, "state")
	t.log = filepath.Join(t.dir, "log")
	if err := errors.Join(os.WriteFile(state, make([]byte, 24), 0o600), os.WriteFile(t.log, nil, 0o600)); err != nil {
		return t, err
	}
	if t.state, err = os.OpenFile(state, os.O_RDWR, 0); err != nil {
		return t, err
	}
	processes, workers := 1, c.waiters+1
	if c.apart {
		processes, workers = workers, 1
	}
	t.broken = make(chan error, processes)
	var ready sync.WaitGroup
	starting := make(chan struct{}, 2*runtime.NumCPU()) // a hundred at once would starve each other
	for range processes {
		starting <- struct{}{}
		cmd := shop.command(who.language, who.id, s.address, state, t.log, strconv.Itoa(workers))
		cmd.Stderr = os.Stderr
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		input, err := cmd.StdinPipe()
		if err != nil {
			return t, err
		}
		output, err := cmd.StdoutPipe()
		if err != nil {
			return t, err
		}
		if err := cmd.Start(); err != nil {
			return t, err
		}
		t.processes = append(t.processes, &process{cmd, input})
		ready.Go(func() {
			defer func() { <-starting }()
			if line, err := bufio.NewReader(output).ReadString('\n'); line != "ready\n" {
				t.broken <- fmt.Errorf("it ended early: %w", err)
			}
		})
	}
	ready.Wait()
	return t, t.failure()
}

func (t *table) failure() error {
	select {
	case err := <-t.broken:
		return err
	default:
		return nil
	}
}

// measure gives the orders.
func (t *table) measure(r *result, s *server, p plan) error {
	if err := t.order(orderHold); err != nil {
		return err
	}
	time.Sleep(time.Second + time.Duration(r.waiters)*10*time.Millisecond) // until all wait
	if r.contest.idle {
		counter, err := s.count()
		if err != nil {
			return err
		}
		time.Sleep(p.idle)
		sent, err := counter.stop()
		if err != nil {
			return err
		}
		r.idle = float64(sent) / p.idle.Seconds() / float64(r.waiters)
	}
	if err := t.order(orderRun); err != nil {
		return err
	}
	if err := t.until(warmUp+p.handOffs, p.limit); err != nil {
		return err
	}
	took, err := t.took()
	if err != nil {
		return err
	}
	r.took = took

	counter, err := s.count()
	if err != nil {
		return err
	}
	before := t.turns()
	if err := t.until(before+p.handOffs/5, p.limit/2); err != nil {
		return err
	}
	after := t.turns()
	sent, err := counter.stop()
	if err != nil {
		return err
	}
	if after == before {
		return errors.New("nobody got the lock while commands were counted")
	}
	r.commands = float64(sent) / float64(after-before)
	return nil
}

func (t *table) order(order uint64) error {
	_, err := t.state.WriteAt(binary.LittleEndian.AppendUint64(nil, order), 0)
	return err
}

func (t *table) turns() int {
	var value [8]byte
	if _, err := t.state.ReadAt(value[:], acquired); err != nil {
		panic(err) // our own file
	}
	return int(binary.LittleEndian.Uint64(value[:]))
}

// until waits for so many turns, up to a limit.
func (t *table) until(turns int, limit time.Duration) error {
	for end := time.Now().Add(limit); t.turns() < turns && time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if err := t.failure(); err != nil {
			return err
		}
	}
	return nil
}

// took reads how long hand-offs took, without the first ones.
func (t *table) took() ([]time.Duration, error) {
	text, err := os.ReadFile(t.log)
	if err != nil {
		return nil, err
	}
	lines := bytes.Fields(text)
	if len(lines) <= warmUp {
		return nil, fmt.Errorf("only %d hand-offs", len(lines))
	}
	var all []time.Duration
	for _, line := range lines[warmUp:] {
		nanoseconds, err := strconv.ParseInt(string(line), 10, 64)
		if err != nil {
			return nil, err
		}
		all = append(all, time.Duration(nanoseconds))
	}
	return all, nil
}

// rise ends all processes.
func (t *table) rise() error {
	for _, p := range t.processes {
		p.cmd.Process.Kill()
		p.input.Close()
	}
	for _, p := range t.processes {
		p.cmd.Wait()
	}
	t.state.Close()
	return os.RemoveAll(t.dir)
}
