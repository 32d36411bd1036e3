package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"strings"
)

// A testEvent is a line of go test -json (go doc test2json).
type testEvent struct {
	Action     string
	Package    string
	ImportPath string // of build-output, instead of Package
	Test       string
	Elapsed    float64
	Output     string
}

// module begins our import paths; it is not worth repeating in every line.
const module = "github.com/libredlock/libredlock/"

// A goRun follows one go test -json.
type goRun struct {
	result *result
	out    io.Writer
	said   map[string][]string // what each test and package printed
	counts map[string]*result  // a package each
	parent map[string]bool     // tests that have subtests, which are counted instead
	failed map[string]bool     // of these, those one of whose subtests failed
}

func runGo(r *result, command *exec.Cmd, out io.Writer) error {
	stdout, err := command.StdoutPipe()
	if err != nil {
		return err
	}
	if err := command.Start(); err != nil {
		return err
	}
	run := newGoRun(r, out)
	scanner := bufio.NewScanner(stdout)
	scanner.Buffer(nil, 16<<20)
	for scanner.Scan() {
		run.line(scanner.Bytes())
	}
	_, _ = io.Copy(io.Discard, stdout) // after a line that is too long
	if err := scanner.Err(); err != nil {
		r.fail("cannot read the output of go test: %v", err)
	}
	return command.Wait()
}

func newGoRun(r *result, out io.Writer) *goRun {
	return &goRun{result: r, out: out, said: map[string][]string{}, counts: map[string]*result{},
		parent: map[string]bool{}, failed: map[string]bool{}}
}

func (g *goRun) line(text []byte) {
	var e testEvent
	if json.Unmarshal(text, &e) != nil || e.Action == "" {
		fmt.Fprintf(g.out, "%s\n", text) // not JSON: go itself complains
		return
	}
	count := g.counts[e.Package]
	if count == nil {
		count = &result{}
		g.counts[e.Package] = count
	}
	e.Package = strings.TrimPrefix(e.Package, module)
	name := strings.TrimSpace(e.Package + " " + e.Test)
	switch e.Action {
	case "run":
		for _, parent := range above(name) {
			g.parent[parent] = true
		}
	case "output":
		if !strings.HasPrefix(e.Output, "=== ") { // RUN, PAUSE, CONT
			g.said[name] = append(g.said[name], e.Output)
		}
	case "build-output":
		fmt.Fprint(g.out, e.Output)
	case "pass":
		if e.Test == "" {
			fmt.Fprintf(g.out, "ok    %s: %d passed in %.1f s\n", e.Package, count.Passed, e.Elapsed)
			break
		}
		if !g.parent[name] {
			count.Passed++
			g.result.Passed++
		}
	case "skip":
		if e.Test == "" {
			break // a package without tests
		}
		count.Failed++
		g.result.fail("%s was skipped", name)
		g.tell("SKIP", name)
	case "fail":
		if e.Test == "" {
			g.packageFailed(e, count)
			break
		}
		for _, parent := range above(name) {
			g.failed[parent] = true
		}
		if !g.failed[name] {
			count.Failed++
			g.result.fail("%s", name)
			g.tell("FAIL", name)
		} else if len(g.said[name]) > 1 { // more than that it failed
			g.tell("FAIL", name)
		}
	}
	if e.Test != "" && e.Action != "output" && e.Action != "run" && e.Action != "pause" && e.Action != "cont" {
		delete(g.said, name)
	}
}

// above lists the tests that a subtest belongs to. Since a subtest's own name may have
// slashes, some of them may not exist.
func above(name string) (parents []string) {
	test := strings.IndexByte(name, ' ') + 1
	for i, char := range name {
		if i > test && char == '/' {
			parents = append(parents, name[:i])
		}
	}
	return parents
}

// packageFailed counts the package itself only when no test of it takes the blame: it did not
// build, crashed, or ran out of time.
func (g *goRun) packageFailed(e testEvent, count *result) {
	fmt.Fprintf(g.out, "FAIL  %s: %d passed, %d failed in %.1f s\n", e.Package, count.Passed, count.Failed, e.Elapsed)
	if count.Failed > 0 {
		return
	}
	g.result.fail("%s as a whole", e.Package)
	g.tell("FAIL", e.Package)
}

func (g *goRun) tell(word, name string) {
	fmt.Fprintf(g.out, "%s  %s\n%s", word, name, strings.Join(g.said[name], ""))
}
