package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// workshop is where peers are built, and from what.
type workshop struct {
	bench  string // this folder
	build  string // has lib/ and include/ of ./build.sh lib; the peers go to bench/ in it
	python string // an interpreter with redis-py
}

// program is how a peer is started.
type program struct {
	command     []string
	environment []string
}

// programs builds the peers of contests. Its error tells of all that is missing.
func (w workshop) programs(chosen []contest) (map[string]program, error) {
	built := map[string]program{}
	var failures []error
	for _, c := range chosen {
		if _, done := built[c.peer]; done {
			continue
		}
		p, err := w.program(c.peer)
		if err != nil {
			failures = append(failures, fmt.Errorf("%s: %w", c.peer, err))
		}
		built[c.peer] = p
	}
	return built, errors.Join(failures...)
}

func (w workshop) program(peer string) (program, error) {
	output := filepath.Join(w.build, "bench", "peer-"+peer)
	if err := os.MkdirAll(filepath.Dir(output), 0o755); err != nil {
		return program{}, err
	}
	switch peer {
	case "go":
		build := exec.Command("go", "build", "-o", output, "./peers/go")
		build.Dir = w.bench
		return program{command: []string{output}}, runBuild(build)
	case "c":
		return w.buildC(output)
	case "python", "asyncio":
		return w.preparePython(filepath.Join(w.bench, "peers", "python", "peer_"+peer+".py"))
	}
	return program{}, fmt.Errorf("there is no such peer")
}

func (w workshop) buildC(output string) (program, error) {
	if err := w.needLibrary(); err != nil {
		return program{}, err
	}
	for _, needed := range []string{"cc", "pkg-config"} {
		if _, err := exec.LookPath(needed); err != nil {
			return program{}, missing(needed, "apt-get install gcc pkg-config")
		}
	}
	if exec.Command("pkg-config", "hiredis").Run() != nil {
		return program{}, missing("hiredis", "apt-get install libhiredis-dev")
	}
	config := exec.Command("pkg-config", "--cflags", "--libs", "redlock", "hiredis")
	config.Env = append(os.Environ(), "PKG_CONFIG_PATH="+filepath.Join(w.build, "lib", "pkgconfig"))
	flags, err := config.Output()
	if err != nil {
		return program{}, fmt.Errorf("pkg-config redlock hiredis: %w", err)
	}
	sources, _ := filepath.Glob(filepath.Join(w.bench, "peers", "c", "*.c"))
	args := append([]string{"-std=c99", "-D_GNU_SOURCE", "-O2", "-Wall", "-Wextra", "-Werror", "-pedantic", "-o", output}, sources...)
	args = append(append(args, strings.Fields(string(flags))...), "-Wl,-rpath,"+filepath.Join(w.build, "lib"))
	return program{command: []string{output}}, runBuild(exec.Command("cc", args...))
}

// preparePython runs a peer with the package from this checkout.
func (w workshop) preparePython(script string) (program, error) {
	if err := w.needLibrary(); err != nil {
		return program{}, err
	}
	environment := []string{
		"PYTHONPATH=" + filepath.Join(w.bench, "..", "..", "bindings", "python", "src"),
		"PYTHONDONTWRITEBYTECODE=1",
		"REDLOCK_LIBRARY=" + filepath.Join(w.build, "lib", "libredlock.so"),
	}
	for _, module := range []string{"redis", "libredlock"} {
		try := exec.Command(w.python, "-c", "import "+module)
		try.Env = append(os.Environ(), environment...)
		if said, err := try.CombinedOutput(); err != nil {
			how := "REDLOCK_PYTHON names a Python with redis-py and libredlock; ./build.sh python makes .venv"
			return program{}, missing(fmt.Sprintf("Python's %s (%s)", module, lastLine(said, err)), how)
		}
	}
	return program{[]string{w.python, script}, environment}, nil
}

func (w workshop) needLibrary() error {
	if _, err := os.Stat(filepath.Join(w.build, "lib", "libredlock.so")); err != nil {
		return missing("libredlock.so", "./build.sh lib makes it")
	}
	return nil
}

func missing(what, how string) error { return fmt.Errorf("%s is missing: %s", what, how) }

func lastLine(said []byte, err error) string {
	lines := strings.Split(strings.TrimSpace(string(said)), "\n")
	if last := lines[len(lines)-1]; last != "" {
		return last
	}
	return err.Error()
}

func runBuild(cmd *exec.Cmd) error {
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", filepath.Base(cmd.Path), err, output)
	}
	return nil
}

// peer is a running process with one contestant.
type peer struct {
	cmd    *exec.Cmd
	input  io.WriteCloser
	output *bufio.Scanner
	about  string // versions
}

// startPeer starts a contestant; its connections live as long as it.
func startPeer(of program, contestant string, s *server) (*peer, error) {
	args := append(slices.Clone(of.command[1:]), contestant, s.address, s.acquire, s.release, s.compareAndDelete)
	p := &peer{cmd: exec.Command(of.command[0], args...)}
	p.cmd.Env = append(os.Environ(), of.environment...)
	p.cmd.Stderr = os.Stderr
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var err error
	if p.input, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	output, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.output = bufio.NewScanner(output)
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	p.about, err = p.read()
	return p, err
}

func (p *peer) read() (string, error) {
	if !p.output.Scan() {
		return "", errors.Join(errors.New("the peer ended early"), p.output.Err(), p.cmd.Wait())
	}
	return p.output.Text(), nil
}

// run makes a run and gives its pairs a second.
func (p *peer) run(callers int, length time.Duration) (float64, error) {
	if _, err := fmt.Fprintln(p.input, callers, length.Milliseconds()); err != nil {
		return 0, err
	}
	line, err := p.read()
	if err != nil {
		return 0, err
	}
	var pairs, nanoseconds float64
	if _, err := fmt.Sscan(line, &pairs, &nanoseconds); err != nil || pairs == 0 {
		return 0, fmt.Errorf("the peer says %q", line)
	}
	return pairs / nanoseconds * 1e9, nil
}

func (p *peer) stop() {
	p.input.Close()
	p.cmd.Wait()
}
