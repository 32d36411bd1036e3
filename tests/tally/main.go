// Command tally runs the test suites of ./build.sh test and counts what they did.
//
//	tally go NAME COMMAND...         runs a go test -json
//	tally pytest NAME COMMAND...     runs a pytest, to which it adds --junitxml
//	tally node NAME node ARG...      runs a node --test, to which it adds a reporter
//	tally sum                        prints what all suites did, and "N passed, N failed" at the end
//
// Results are kept in the file that TALLY names, a line a suite. The counts are the runners' own; of a
// Go test with subtests these are counted. Nothing may be skipped, so a skipped test counts as failed;
// so do a package that does not build, a runner that fails without naming a test, and a suite
// that ran no test.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"text/tabwriter"
	"time"
)

// A result is what one suite did.
type result struct {
	Suite   string  `json:"suite"`
	Passed  int     `json:"passed"`
	Failed  int     `json:"failed"` // with the skipped
	Seconds float64 `json:"seconds"`
	// Failures names what failed, a line each.
	Failures []string `json:"failures,omitempty"`
}

func (r *result) fail(format string, args ...any) {
	r.Failed++
	r.Failures = append(r.Failures, fmt.Sprintf(format, args...))
}

// errFailed is for a run of which everything has been said.
var errFailed = errors.New("something failed")

func main() {
	err := run(os.Args[1:], os.Stdout)
	if err != nil && err != errFailed {
		fmt.Fprintln(os.Stderr, "tally:", err)
	}
	if err != nil {
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	file := os.Getenv("TALLY")
	if file == "" {
		return fmt.Errorf("TALLY names no file")
	}
	switch {
	case len(args) == 1 && args[0] == "sum":
		results, err := read(file)
		if err != nil {
			return err
		}
		return sum(results, out)
	case len(args) > 2 && args[0] == "go":
		return record(file, args[1], args[2:], out, runGo)
	case len(args) > 2 && args[0] == "pytest":
		return record(file, args[1], args[2:], out, runPytest)
	case len(args) > 2 && args[0] == "node":
		return record(file, args[1], args[2:], out, runNode)
	}
	return fmt.Errorf("usage: tally go|pytest|node NAME COMMAND... or tally sum")
}

// record runs a suite and appends its result to the file.
func record(file, suite string, command []string, out io.Writer, runner func(*result, *exec.Cmd, io.Writer) error) error {
	fmt.Fprintf(out, "\n== %s\n", suite)
	r := result{Suite: suite}
	started := time.Now()
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stderr = out
	err := runner(&r, cmd, out)
	if err != nil && r.Failed == 0 {
		r.fail("%s: %v", strings.Join(command, " "), err)
	}
	if r.Passed+r.Failed == 0 {
		r.fail("ran no test")
	}
	r.Seconds = time.Since(started).Seconds()
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	results, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer results.Close()
	if _, err := results.Write(append(line, '\n')); err != nil {
		return err
	}
	if r.Failed > 0 {
		return errFailed // sum tells
	}
	return nil
}

func read(file string) (results []result, err error) {
	opened, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer opened.Close()
	for decoder := json.NewDecoder(opened); ; {
		var r result
		if err := decoder.Decode(&r); err == io.EOF {
			return results, nil
		} else if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		results = append(results, r)
	}
}

func sum(results []result, out io.Writer) error {
	var total result
	fmt.Fprintln(out)
	table := tabwriter.NewWriter(out, 0, 0, 3, ' ', tabwriter.AlignRight)
	fmt.Fprintf(table, "passed\tfailed\tseconds\t\n")
	for _, r := range results {
		fmt.Fprintf(table, "%d\t%d\t%.0f\t   %s\n", r.Passed, r.Failed, r.Seconds, r.Suite)
		total.Passed += r.Passed
		total.Failed += r.Failed
		for _, failure := range r.Failures {
			total.Failures = append(total.Failures, r.Suite+": "+failure)
		}
	}
	table.Flush()
	if len(total.Failures) > 0 {
		fmt.Fprintf(out, "\nfailed:\n  %s\n", strings.Join(total.Failures, "\n  "))
	}
	fmt.Fprintf(out, "\n%d passed, %d failed\n", total.Passed, total.Failed)
	if total.Failed > 0 || total.Passed == 0 {
		return errFailed
	}
	return nil
}
