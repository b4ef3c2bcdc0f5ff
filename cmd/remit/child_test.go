package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"

	"github.com/remit-dev/remit/internal/proof/statcheck"
)

var here, _ = os.Getwd()

// self is the program that is killed, hundreds of times: these tests.
var self = sync.OnceValue(func() string {
	dir, err := os.MkdirTemp("", "remit-child-")
	if err != nil {
		panic(err)
	}
	leave(dir)
	program, err := statcheck.Program(dir)
	if err != nil {
		panic(err)
	}
	return program
})

// builtOnce is the program itself, without the race detector: linking it takes seconds.
var builtOnce = sync.OnceValues(func() (bin string, err error) {
	dir, err := os.MkdirTemp("", "remit-command-")
	if err != nil {
		return "", err
	}
	leave(dir)
	bin = filepath.Join(dir, "remit")
	cmd := exec.Command("go", "build", "-ldflags=-s -w", "-o", bin, ".")
	cmd.Dir, cmd.Env = here, append(os.Environ(), "CGO_ENABLED=0") // the folder also below t.Chdir
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return bin, nil
})
