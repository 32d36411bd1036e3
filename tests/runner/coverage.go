package runner

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/libredlock/libredlock/tests/internal/drivers"
)

// What every language must have shown before the scenarios pass. INTERNAL is a bug and has no scenario.
var (
	kinds    = []string{"mutex", "semaphore"}
	verbs    = []string{"acquire", "try_acquire", "renew", "release", "inspect", "force_release", "close", "cancel"}
	statuses = []string{
		"OK", "HELD", "TIMEOUT", "LOST", "UNAVAILABLE", "CANCELED",
		"INVALID", "NOT_HELD", "WRONG_KIND", "UNSUPPORTED", "CLOSED",
	}
)

// Coverage is which kinds, verbs and statuses were seen in which language.
type Coverage struct {
	mu   sync.Mutex
	seen map[string]map[string]int // by language, then by word
}

// Saw notes a reply.
func (c *Coverage) Saw(driver, kind, verb, status string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seen == nil {
		c.seen = map[string]map[string]int{}
	}
	language := drivers.LanguageOf(driver)
	if c.seen[language] == nil {
		c.seen[language] = map[string]int{}
	}
	for _, word := range []string{kind, verb, status} {
		c.seen[language][word]++
	}
}

// Missing lists what the languages have not shown.
func (c *Coverage) Missing(languages []string) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var missing []string
	for _, language := range languages {
		for _, word := range slices.Concat(kinds, verbs, statuses) {
			if c.seen[language][word] == 0 {
				missing = append(missing, language+": "+word)
			}
		}
	}
	return missing
}

// Table shows how often each language has shown what.
func (c *Coverage) Table(languages []string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out strings.Builder
	fmt.Fprintf(&out, "%-14s", "")
	for _, language := range languages {
		fmt.Fprintf(&out, "%8s", language)
	}
	for _, word := range slices.Concat(kinds, verbs, statuses) {
		fmt.Fprintf(&out, "\n%-14s", word)
		for _, language := range languages {
			count := "MISSING"
			if n := c.seen[language][word]; n > 0 {
				count = fmt.Sprint(n)
			}
			fmt.Fprintf(&out, "%8s", count)
		}
	}
	return out.String()
}
