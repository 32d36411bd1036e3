// Command go is the Go driver as a process of its own, for the hammer.
package main

import (
	"log"
	"os"

	"github.com/libredlock/libredlock/tests/drivers/go/driver"
)

func main() {
	if err := driver.Serve(os.Stdin, os.Stdout); err != nil {
		log.Fatal(err)
	}
}
