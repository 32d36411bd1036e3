package main

import (
	"encoding/xml"
	"io"
	"os"
	"os/exec"
)

// A junitReport is what pytest writes with --junitxml.
type junitReport struct {
	Cases []struct {
		Class   string    `xml:"classname,attr"`
		Name    string    `xml:"name,attr"`
		Failure *struct{} `xml:"failure"`
		Error   *struct{} `xml:"error"`
		Skipped *struct{} `xml:"skipped"`
	} `xml:"testsuite>testcase"`
}

func runPytest(r *result, command *exec.Cmd, out io.Writer) error {
	file, err := os.CreateTemp("", "pytest-*.xml")
	if err != nil {
		return err
	}
	defer os.Remove(file.Name())
	defer file.Close()
	command.Args = append(command.Args, "--junitxml="+file.Name())
	command.Stdout = out
	ended := command.Run()
	var report junitReport
	if err := xml.NewDecoder(file).Decode(&report); err != nil {
		if ended != nil {
			return ended // why there is no report
		}
		return err
	}
	r.countCases(report)
	return ended
}

func (r *result) countCases(report junitReport) {
	for _, test := range report.Cases {
		name := test.Class + " " + test.Name
		switch {
		case test.Failure != nil, test.Error != nil:
			r.fail("%s", name)
		case test.Skipped != nil:
			r.fail("%s was skipped", name)
		default:
			r.Passed++
		}
	}
}
