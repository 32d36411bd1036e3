// Package mutants breaks one rule of the machine or of the scripts at a time, and expects the simulation to notice.
//
// A mutant is a text of a source file and what is put in its place; the build sees it by go build -overlay, so that nothing in the
// checkout changes. The simulation executes the scripts as core/sim has them in Go, so rules of the scripts are broken there;
// tests/script compares the two.
//
// Some run by default, and all of them by
//
//	go test ./mutants -v -all
//
// -census=10000 shows how many seeds find each.
package mutants

import (
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	all    = flag.Bool("all", false, "run all mutants, not only some")
	census = flag.Int("census", 0, "run each with this many seeds to the end, and log how many find it")
)

// mutant is one rule broken.
type mutant struct {
	name  string
	often bool // it is among those that run by default
	edits []edit
}

// enough is how many seeds the simulation finds each with.
const enough = 1000

// edit replaces a text that is in a file exactly once.
type edit struct{ file, old, new string }

func TestEveryMutantIsPossible(t *testing.T) {
	for _, m := range mutants {
		m.overlay(t)
	}
}

func TestTheSimulationFindsMutants(t *testing.T) {
	for _, m := range mutants {
		if !m.often && !*all && *census == 0 {
			continue
		}
		t.Run(m.name, func(t *testing.T) {
			simulation := m.build(t)
			if *census > 0 {
				seeds := found(t, simulation, "-seeds="+strconv.Itoa(*census))
				t.Logf("%d of %d seeds", len(seeds), *census)
				return
			}
			seeds := found(t, simulation, "-test.failfast", "-seeds="+strconv.Itoa(enough))
			require.NotEmpty(t, seeds, "the simulation does not notice it within %d seeds", enough)
			t.Logf("seed %s", seeds[0])
		})
	}
}

// root is the checkout.
const root = "../.."

// overlay writes the changed files, and the one that tells the build of them.
func (m *mutant) overlay(t *testing.T) string {
	dir := t.TempDir()
	changed := map[string]string{}
	for _, e := range m.edits {
		source, ok := changed[e.file]
		if !ok {
			text, err := os.ReadFile(filepath.Join(root, e.file))
			require.NoError(t, err)
			source = string(text)
		}
		require.Equal(t, 1, strings.Count(source, e.old), "in %s:\n%s", e.file, e.old)
		changed[e.file] = strings.Replace(source, e.old, e.new, 1)
	}
	replace := map[string]string{}
	for file, source := range changed {
		path := filepath.Join(dir, strings.ReplaceAll(file, "/", "_"))
		require.NoError(t, os.WriteFile(path, []byte(source), 0o600))
		original, err := filepath.Abs(filepath.Join(root, file))
		require.NoError(t, err)
		replace[original] = path
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	require.NoError(t, err)
	path := filepath.Join(dir, "overlay.json")
	require.NoError(t, os.WriteFile(path, text, 0o600))
	return path
}

// build makes the simulation's test program of the mutant. It has to compile.
func (m *mutant) build(t *testing.T) string {
	program := filepath.Join(t.TempDir(), "sim.test")
	command := exec.Command("go", "test", "-c", "-o", program, "-overlay", m.overlay(t), "./core/sim")
	command.Dir = root
	said, err := command.CombinedOutput()
	require.NoError(t, err, "%s", said)
	return program
}

// A failing seed, as core/sim reports it: a program that just ended in an error has shown nothing.
var failing = regexp.MustCompile(`(?m)seed (\d+: .*)$`)

// found runs the simulation and lists the seeds that failed, and why.
func found(t *testing.T, simulation string, flags ...string) (seeds []string) {
	said, err := exec.Command(simulation, append(flags, "-test.run=^TestSim$")...).CombinedOutput()
	for _, match := range failing.FindAllStringSubmatch(string(said), -1) {
		seeds = append(seeds, match[1])
	}
	if err != nil && len(seeds) == 0 && !strings.Contains(string(said), "these never happened") {
		t.Fatalf("%v\n%s", err, said)
	}
	return seeds
}
