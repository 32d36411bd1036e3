package main

import (
	"encoding/xml"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestGo(t *testing.T) {
	for _, test := range []struct {
		name   string
		lines  string
		passed int
		failed []string
	}{
		{"subtests", `
			{"Action":"start","Package":"p"}
			{"Action":"run","Package":"p","Test":"A"}
			{"Action":"run","Package":"p","Test":"A/b"}
			{"Action":"run","Package":"p","Test":"A/c"}
			{"Action":"pass","Package":"p","Test":"A/b"}
			{"Action":"pass","Package":"p","Test":"A/c"}
			{"Action":"pass","Package":"p","Test":"A"}
			{"Action":"pass","Package":"p"}`, 2, nil},
		{"failing subtest", `
			{"Action":"run","Package":"x.y/p/q","Test":"A"}
			{"Action":"run","Package":"x.y/p/q","Test":"A/b"}
			{"Action":"run","Package":"x.y/p/q","Test":"A/b/n=1/m=2"}
			{"Action":"run","Package":"x.y/p/q","Test":"A/c"}
			{"Action":"pass","Package":"x.y/p/q","Test":"A/c"}
			{"Action":"fail","Package":"x.y/p/q","Test":"A/b/n=1/m=2"}
			{"Action":"fail","Package":"x.y/p/q","Test":"A/b"}
			{"Action":"fail","Package":"x.y/p/q","Test":"A"}
			{"Action":"fail","Package":"x.y/p/q"}`, 1, []string{"x.y/p/q A/b/n=1/m=2"}},
		{"failing after its subtests", `
			{"Action":"run","Package":"p","Test":"A"}
			{"Action":"run","Package":"p","Test":"A/b"}
			{"Action":"pass","Package":"p","Test":"A/b"}
			{"Action":"fail","Package":"p","Test":"A"}`, 1, []string{"p A"}},
		{"failure", `
			{"Action":"pass","Package":"p","Test":"A"}
			{"Action":"output","Package":"p","Test":"B","Output":"why\n"}
			{"Action":"fail","Package":"p","Test":"B"}
			{"Action":"fail","Package":"p"}`, 1, []string{"p B"}},
		{"skip", `{"Action":"skip","Package":"p","Test":"A"}`, 0, []string{"p A was skipped"}},
		{"no test files", `{"Action":"skip","Package":"p"}`, 0, nil},
		{"does not build", `
			{"ImportPath":"p","Action":"build-output","Output":"p.go:1: no\n"}
			{"ImportPath":"p","Action":"build-fail"}
			{"Action":"start","Package":"p"}
			{"Action":"fail","Package":"p","FailedBuild":"p"}`, 0, []string{"p as a whole"}},
		{"crash beside a pass", `
			{"Action":"pass","Package":"p","Test":"A"}
			{"Action":"fail","Package":"p"}
			{"Action":"pass","Package":"q","Test":"A"}`, 2, []string{"p as a whole"}},
		{"not JSON", `go: errors parsing go.mod`, 0, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			var r result
			run := newGoRun(&r, io.Discard)
			for line := range strings.Lines(strings.TrimSpace(test.lines)) {
				run.line([]byte(strings.TrimSpace(line)))
			}
			if r.Passed != test.passed || r.Failed != len(test.failed) || !slices.Equal(r.Failures, test.failed) {
				t.Errorf("got %+v", r)
			}
		})
	}
}

func TestPytest(t *testing.T) {
	var report junitReport
	err := xml.Unmarshal([]byte(`<testsuites><testsuite tests="4">
		<testcase classname="m" name="a"/>
		<testcase classname="m" name="b"><failure message="x">y</failure></testcase>
		<testcase classname="m" name="c"><error/></testcase>
		<testcase classname="m" name="d"><skipped/></testcase>
	</testsuite></testsuites>`), &report)
	if err != nil {
		t.Fatal(err)
	}
	var r result
	r.countCases(report)
	if want := []string{"m b", "m c", "m d was skipped"}; r.Passed != 1 || r.Failed != 3 || !slices.Equal(r.Failures, want) {
		t.Errorf("got %+v", r)
	}
}

// TestRunners runs commands that stand in for a runner.
func TestRunners(t *testing.T) {
	t.Setenv("TALLY", filepath.Join(t.TempDir(), "results"))
	for _, test := range []struct{ kind, script, failure string }{
		{"go", `echo '{"Action":"pass","Package":"p","Test":"A"}'`, ""},
		{"go", `echo '{"Action":"pass","Package":"p","Test":"A"}'; exit 3`, "exit status 3"},
		{"go", `true`, "ran no test"},
		{"pytest", `for a; do file=${a#--junitxml=}; done; echo '<testsuites><testsuite><testcase name="a"/></testsuite></testsuites>' >$file`, ""},
		{"pytest", `exit 4`, "exit status 4"},
		{"pytest", `true`, "EOF"},
	} {
		err := run([]string{test.kind, test.script, "sh", "-c", test.script, "sh"}, io.Discard)
		if (err != nil) != (test.failure != "") {
			t.Errorf("%s: %v", test.script, err)
		}
		results, err := read(os.Getenv("TALLY"))
		if err != nil {
			t.Fatal(err)
		}
		last := results[len(results)-1]
		if test.failure == "" && last.Passed == 1 && last.Failed == 0 {
			continue
		}
		if last.Failed != 1 || !strings.Contains(last.Failures[0], test.failure) {
			t.Errorf("%s: got %+v", test.script, last)
		}
	}
}

func TestNode(t *testing.T) {
	const report = `<?xml version="1.0" encoding="utf-8"?>
		<testsuites>
			<testsuite name="suite" tests="3" failures="1" skipped="1">
				<testcase name="passes" time="0.1"/>
				<testcase name="fails"><failure type="testCodeFailure">why</failure></testcase>
				<testsuite name="within"><testcase name="is left out"><skipped type="skipped" message="true"/></testcase></testsuite>
			</testsuite>
			<testcase name="alone"/>
			<!-- tests 4 -->
		</testsuites>`
	var parsed nodeSuite
	if err := xml.Unmarshal([]byte(report), &parsed); err != nil {
		t.Fatal(err)
	}
	var r result
	r.countSuite(parsed, "")
	want := []string{"suite > fails", "suite > within > is left out was skipped"}
	if r.Passed != 2 || r.Failed != 2 || !slices.Equal(r.Failures, want) {
		t.Errorf("got %+v", r)
	}
}
