package runner_test

import (
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/libredlock/libredlock/tests/internal/drivers"
	"github.com/libredlock/libredlock/tests/runner"
)

// TestMain lets four languages run at the same time, however few processors there are: scenarios spend most of their time waiting.
// -parallel says otherwise.
func TestMain(m *testing.M) {
	parallel := "4"
	flag.Parse()
	flag.Visit(func(f *flag.Flag) {
		if f.Name == "test.parallel" {
			parallel = f.Value.String()
		}
	})
	if err := flag.Set("test.parallel", parallel); err != nil {
		panic(err)
	}
	m.Run()
}

// pool starts each driver once; they end with the whole test.
type pool struct {
	owner   *testing.T
	mu      sync.Mutex
	running map[string]*drivers.Driver
}

// Driver skips or fails t if the driver can't be built.
func (p *pool) Driver(t testing.TB, name string) *drivers.Driver {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.running[name] == nil {
		launcher := drivers.Prepare(t, name)
		p.running[name] = launcher.Start(p.owner)
	}
	return p.running[name]
}

// TestScenarios runs every scenario in every language. One of them: -run 'TestScenarios/all/python/renew.txt'.
func TestScenarios(t *testing.T) {
	files, err := runner.Load("../scenarios")
	require.NoError(t, err)
	running := &pool{owner: t, running: map[string]*drivers.Driver{}}
	var coverage runner.Coverage
	var ran atomic.Int64
	total := 0
	t.Run("all", func(t *testing.T) { // ends when every language has
		for _, name := range drivers.Names {
			for _, scenarios := range files {
				total += len(scenarios)
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				driver := running.Driver(t, name)
				for i, file := range slices.Sorted(maps.Keys(files)) {
					t.Run(file, func(t *testing.T) {
						for j, scenario := range files[file] {
							ran.Add(1)
							if missing := lacking(driver, scenario); missing != "" {
								t.Logf("%s: left out, since %s has no %s", scenario.Title, name, missing)
								continue
							}
							t.Run(scenario.Title, func(t *testing.T) {
								id := fmt.Sprintf("%s/%d.%d/", name, i, j)
								runner.Run(t, scenario, id, driver, running, &coverage)
								require.NoError(t, driver.Err())
							})
						}
					})
				}
			})
		}
	})
	var languages []string
	for _, name := range drivers.Names {
		if language := drivers.LanguageOf(name); !slices.Contains(languages, language) {
			languages = append(languages, language)
		}
	}
	if ran.Load() < int64(total) {
		t.Logf("only %d of %d scenarios ran, so that coverage is not demanded:\n%s", ran.Load(), total, coverage.Table(languages))
		return
	}
	t.Logf("how often each language has shown what:\n%s", coverage.Table(languages))
	require.Empty(t, coverage.Missing(languages), "no scenario shows this")
}

func lacking(driver *drivers.Driver, scenario *runner.Scenario) string {
	for _, need := range scenario.Needs {
		if driver.Lacks(need) {
			return need
		}
	}
	return ""
}

func TestParseSteps(t *testing.T) {
	scenarios, err := runner.Parse("f.txt", `
		# a comment
		scenario one
		needs cancel
		a acquire n%00*2 metadata="two words" ttl=1s -> INVALID "in quotes" not "x -> y"
	`)
	require.NoError(t, err)
	require.Len(t, scenarios, 1)
	require.Equal(t, []string{"cancel"}, scenarios[0].Needs)
	step := scenarios[0].Steps[0]
	require.Equal(t, "f.txt:5", step.At)
	require.Equal(t, []runner.Word{
		{Text: "a"}, {Text: "acquire"}, {Text: "n\x00n\x00"}, {Text: "metadata=two words"}, {Text: "ttl=1s"},
	}, step.Words)
	require.Equal(t, []runner.Word{
		{Text: "INVALID"}, {Text: "in quotes", Quoted: true}, {Text: "not"}, {Text: "x -> y", Quoted: true},
	}, step.Expect)
}

func TestParseRefuses(t *testing.T) {
	for _, text := range []string{
		"a close", "scenario x\nscenario x", "scenario x\n-> OK", "scenario x\na \"b", "scenario x\na %zz",
	} {
		_, err := runner.Parse("f.txt", text)
		require.ErrorContains(t, err, "f.txt:", "%q", text)
	}
}

// TestCoverageDemandsEverything makes sure that the last check of TestScenarios can fail.
func TestCoverageDemandsEverything(t *testing.T) {
	var coverage runner.Coverage
	coverage.Saw("c-async", "mutex", "acquire", "HELD")
	missing := coverage.Missing([]string{"c"})
	require.NotContains(t, missing, "c: HELD")
	require.NotContains(t, missing, "c: acquire")
	require.Contains(t, missing, "c: LOST")
	require.Contains(t, missing, "c: cancel")
	require.NotContains(t, strings.Join(missing, " "), "INTERNAL")
	require.Contains(t, coverage.Table([]string{"c"}), "MISSING")
}
