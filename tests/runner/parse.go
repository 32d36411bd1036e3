// Package runner runs the scenarios of tests/scenarios against the driver of each language.
package runner

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/libredlock/libredlock/tests/internal/line"
)

// Scenario is one story about locks.
type Scenario struct {
	Title string
	Needs []string // what the driver's language must be able to express
	Steps []*Step
}

// Step is one line of a scenario.
type Step struct {
	At     string // file:line
	Text   string
	Words  []Word // before "->"
	Expect []Word // after it
}

// Word is one word of a step.
type Word struct {
	Text   string
	Quoted bool // "in quotes": taken as it is
}

// Load reads every scenario of a folder, by file.
func Load(folder string) (map[string][]*Scenario, error) {
	paths, err := filepath.Glob(filepath.Join(folder, "*.txt"))
	if err != nil {
		return nil, err
	}
	files := map[string][]*Scenario{}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		name := filepath.Base(path)
		if files[name], err = Parse(name, string(text)); err != nil {
			return nil, err
		}
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("no scenarios in %s", folder)
	}
	return files, nil
}

// Parse reads the scenarios of one file.
func Parse(file, text string) ([]*Scenario, error) {
	var scenarios []*Scenario
	titles := map[string]bool{}
	for i, content := range strings.Split(text, "\n") {
		at := fmt.Sprintf("%s:%d", file, i+1)
		content = strings.TrimSpace(content)
		if content == "" || strings.HasPrefix(content, "#") {
			continue
		}
		if title, found := strings.CutPrefix(content, "scenario "); found {
			if titles[title] {
				return nil, fmt.Errorf("%s: a second scenario %q", at, title)
			}
			titles[title] = true
			scenarios = append(scenarios, &Scenario{Title: title})
			continue
		}
		if len(scenarios) == 0 {
			return nil, fmt.Errorf("%s: a step before the first \"scenario <title>\"", at)
		}
		scenario := scenarios[len(scenarios)-1]
		if needs, found := strings.CutPrefix(content, "needs "); found {
			scenario.Needs = append(scenario.Needs, strings.Fields(needs)...)
			continue
		}
		step, err := parseStep(at, content)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", at, err)
		}
		scenario.Steps = append(scenario.Steps, step)
	}
	return scenarios, nil
}

var wordPattern = regexp.MustCompile(`"[^"]*"|[^\s"]+"[^"]*"|[^\s"]+|"`)

func parseStep(at, content string) (*Step, error) {
	step := &Step{At: at, Text: content}
	words := &step.Words
	for _, raw := range wordPattern.FindAllString(content, -1) {
		switch {
		case raw == "->":
			words = &step.Expect
			continue
		case raw == `"`:
			return nil, fmt.Errorf("a quote that doesn't end")
		case raw[0] == '"':
			*words = append(*words, Word{raw[1 : len(raw)-1], true})
			continue
		}
		raw, quoted, _ := strings.Cut(raw, `"`) // metadata="two words"
		text, err := expand(raw)
		if err != nil {
			return nil, err
		}
		*words = append(*words, Word{text + strings.TrimSuffix(quoted, `"`), false})
	}
	if len(step.Words) == 0 {
		return nil, fmt.Errorf("nothing before ->")
	}
	return step, nil
}

var repeatPattern = regexp.MustCompile(`^(.*?)([^=]+)\*(\d+)$`)

// expand replaces %XX by a byte and x*1024 by so many x.
func expand(word string) (string, error) {
	if match := repeatPattern.FindStringSubmatch(word); match != nil {
		count, err := strconv.Atoi(match[3])
		if err != nil {
			return "", err
		}
		word = match[1] + strings.Repeat(match[2], count)
	}
	return line.Unescape(word)
}
