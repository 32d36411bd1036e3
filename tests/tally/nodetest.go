package main

import (
	"encoding/xml"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
)

// A nodeSuite is what node's junit reporter writes of a suite, or of everything.
type nodeSuite struct {
	Name   string      `xml:"name,attr"`
	Suites []nodeSuite `xml:"testsuite"`
	Cases  []struct {
		Name    string    `xml:"name,attr"`
		Failure *struct{} `xml:"failure"`
		Skipped *struct{} `xml:"skipped"`
	} `xml:"testcase"`
}

func runNode(r *result, command *exec.Cmd, out io.Writer) error {
	file, err := os.CreateTemp("", "node-*.xml")
	if err != nil {
		return err
	}
	defer os.Remove(file.Name())
	defer file.Close()
	// Options of node come before the tests.
	command.Args = slices.Insert(command.Args, 1,
		"--test-reporter=spec", "--test-reporter-destination=stdout",
		"--test-reporter=junit", "--test-reporter-destination="+file.Name())
	command.Stdout = out
	ended := command.Run()
	var report nodeSuite
	if err := xml.NewDecoder(file).Decode(&report); err != nil {
		if ended != nil {
			return ended // why there is no report
		}
		return fmt.Errorf("node's report: %w", err)
	}
	r.countSuite(report, "")
	return ended
}

func (r *result) countSuite(s nodeSuite, prefix string) {
	for _, test := range s.Cases {
		name := prefix + test.Name
		switch {
		case test.Failure != nil:
			r.fail("%s", name)
		case test.Skipped != nil:
			r.fail("%s was skipped", name)
		default:
			r.Passed++
		}
	}
	for _, suite := range s.Suites {
		r.countSuite(suite, prefix+suite.Name+" > ")
	}
}
