//go:build linux

// Command actor runs one random program on the current folder:
//
//	actor SEED STEPS [setup] [GROUP...]
package main

import (
	"fmt"
	"os"
	"strconv"

	"github.com/remit-dev/remit/internal/proof/randprog"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "actor:", err)
		os.Exit(2)
	}
}

func run(args []string) error {
	if len(args) < 2 {
		return fmt.Errorf("arguments %q: must be SEED STEPS [setup] [GROUP...]", args)
	}
	var numbers []int
	setup := false
	for _, arg := range args {
		if arg == "setup" {
			setup = true
			continue
		}
		n, err := strconv.Atoi(arg)
		if err != nil {
			return err
		}
		numbers = append(numbers, n)
	}
	return randprog.Act(randprog.Config{
		Seed: uint64(numbers[0]), Steps: numbers[1], Groups: numbers[2:], Setup: setup,
		Log: func(line string) { fmt.Println(line) },
	})
}
