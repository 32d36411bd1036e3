package runner

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/libredlock/libredlock/tests/internal/line"
)

// check compares a reply with what stands after "->": a status (OK if there is none; HELD|TIMEOUT is either), then in any order
// as <name>, "part of the message", not "part of it", within <duration>, after <duration>, <field>=<value>.
func (w *World) check(expect []Word, reply *line.Line, acquired *hold, took time.Duration) error {
	status := "OK"
	if len(expect) > 0 {
		status, expect = expect[0].Text, expect[1:]
	}
	if !slices.Contains(strings.Split(status, "|"), reply.Word) {
		return fmt.Errorf("expected %s, got: %s %s", status, reply.Word, describe(reply))
	}
	for len(expect) > 0 {
		word := expect[0]
		used := 2
		var argument string
		if len(expect) > 1 {
			argument = expect[1].Text
		}
		var err error
		switch {
		case word.Quoted:
			used = 1
			if !strings.Contains(reply.Get("message"), word.Text) {
				err = fmt.Errorf("%q is not in the message: %q", word.Text, reply.Get("message"))
			}
		case word.Text == "not":
			if strings.Contains(reply.String(), argument) || strings.Contains(reply.Get("message"), argument) {
				err = fmt.Errorf("%q is in the reply: %s", argument, describe(reply))
			}
		case word.Text == "as":
			err = w.name(argument, reply, acquired)
		case word.Text == "within" || word.Text == "after":
			err = checkTime(word.Text, argument, took)
		default:
			used = 1
			err = w.checkField(word.Text, reply)
		}
		if err != nil {
			return err
		}
		if used > len(expect) {
			return fmt.Errorf("%s needs something after it", word.Text)
		}
		expect = expect[used:]
	}
	return nil
}

func describe(reply *line.Line) string {
	if message, found := reply.Lookup("message"); found {
		return message
	}
	return fmt.Sprint(reply.Fields)
}

// name remembers a hold, or the digest of an inspect's first holder.
func (w *World) name(name string, reply *line.Line, acquired *hold) error {
	if digest, found := reply.Lookup("digest"); found {
		w.digests[name] = digest
		return nil
	}
	if acquired == nil {
		return fmt.Errorf("there is nothing to be called %s", name)
	}
	w.holds[name] = acquired
	return nil
}

func checkTime(word, limit string, took time.Duration) error {
	d, err := time.ParseDuration(limit)
	switch {
	case err != nil:
		return err
	case word == "within" && took > d:
		return fmt.Errorf("it took %v", took)
	case word == "after" && took < d:
		return fmt.Errorf("it took only %v", took)
	}
	return nil
}

// checkField checks one field of a reply: holders=1, ttl=9s..10s, fence=h1, who="worker 7".
func (w *World) checkField(expected string, reply *line.Line) error {
	key, want, found := strings.Cut(expected, "=")
	if !found {
		return fmt.Errorf("%q is nothing that can be expected", expected)
	}
	field := key
	switch key {
	case "ttl", "remaining":
		field = key + "_ms"
	case "holders":
		if got := strconv.Itoa(len(reply.All("digest"))); got != want {
			return fmt.Errorf("%s holders: %s", got, describe(reply))
		}
		return nil
	case "slots":
		if got := strings.Join(reply.All("slot"), ","); got != want {
			return fmt.Errorf("slots %s: %s", got, describe(reply))
		}
		return nil
	case "who":
		if got := reply.Get("who"); !strings.Contains(got, want) {
			return fmt.Errorf("%q is not in who: %q", want, got)
		}
		return nil
	case "fence":
		if h := w.holds[want]; h != nil {
			want = strconv.FormatUint(h.fence, 10)
		}
	}
	got, found := reply.Lookup(field)
	if !found {
		return fmt.Errorf("the reply has no %s: %s", field, describe(reply))
	}
	if want == "never" {
		want = "-1"
	}
	return matches(got, want)
}

// matches compares a text with a text or, if want is a range like 1..5 or 9s..10s, a number with it.
func matches(got, want string) error {
	low, high, isRange := strings.Cut(want, "..")
	if !isRange {
		if got != want {
			return fmt.Errorf("expected %q, got %q", want, got)
		}
		return nil
	}
	number, err := strconv.ParseInt(got, 10, 64)
	if err != nil {
		return fmt.Errorf("expected a number in %s, got %q", want, got)
	}
	from, err := parseNumber(low)
	if err != nil {
		return err
	}
	to, err := parseNumber(high)
	if err != nil {
		return err
	}
	if number < from || number > to {
		return fmt.Errorf("expected %s, got %d", want, number)
	}
	return nil
}

// parseNumber reads a number or a duration, in milliseconds then.
func parseNumber(text string) (int64, error) {
	if number, err := strconv.ParseInt(text, 10, 64); err == nil {
		return number, nil
	}
	return inMilliseconds(text)
}

// compare does "remaining h 9s..10s", "fence h2 > fence h1", "fence h = 0" and "token h1 != token h2".
func (w *World) compare(words []Word) error {
	if len(words) == 3 && words[0].Text == "remaining" {
		return w.remaining(words[1].Text, words[2].Text)
	}
	if len(words) < 4 {
		return fmt.Errorf("expected: <remaining|fence|token> <hold> and what to compare it with")
	}
	left, err := w.property(words[0].Text, words[1].Text)
	if err != nil {
		return err
	}
	right := words[3].Text
	if len(words) == 5 {
		if right, err = w.property(words[3].Text, words[4].Text); err != nil {
			return err
		}
	}
	var holds bool
	switch words[2].Text {
	case "=":
		holds = left == right
	case "!=":
		holds = left != right
	case ">":
		a, errA := strconv.ParseUint(left, 10, 64)
		b, errB := strconv.ParseUint(right, 10, 64)
		if errA != nil || errB != nil {
			return fmt.Errorf("%s or %s is no number", left, right)
		}
		holds = a > b
	default:
		return fmt.Errorf("%q is no comparison: =, != or >", words[2].Text)
	}
	if !holds {
		return fmt.Errorf("%s %s %s does not hold", left, words[2].Text, right)
	}
	return nil
}

// property is a hold's fence or token.
func (w *World) property(which, name string) (string, error) {
	h, err := w.hold(name)
	if err != nil {
		return "", err
	}
	switch which {
	case "fence":
		return strconv.FormatUint(h.fence, 10), nil
	case "token":
		return h.token, nil
	}
	return "", fmt.Errorf("a hold has no %q", which)
}

func (w *World) remaining(name, want string) error {
	h, err := w.hold(name)
	if err != nil {
		return err
	}
	reply, err := h.driver.Call(callLimit, "remaining", line.Field{Key: "held", Value: h.id})
	if err != nil {
		return err
	}
	if reply.Word != "OK" {
		return fmt.Errorf("remaining: %s", reply)
	}
	return matches(reply.Get("remaining_ms"), want)
}
