package drivers

import "os/exec"

// Foreign launches a program that speaks the drivers' protocol, or some of its verbs, for another library.
func Foreign(name string, command func() *exec.Cmd) *Launcher {
	return &Launcher{name: name, command: command}
}
