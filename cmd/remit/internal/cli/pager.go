package cli

import (
	"cmp"
	"os"
	"os/exec"
	"strings"
)

// defaultPager leaves what fits on one screen, and keeps colours.
const defaultPager = "less -FRX"

// Page sends the rest of the output through the person's pager: $PAGER, or less
// if it is there. It does nothing without a terminal, for a coding agent, and
// with the pager "cat" or an empty one.
func (a *App) Page() {
	if !a.OutTerminal || a.Agent != nil || a.Getenv("TERM") == "dumb" {
		return
	}
	words := strings.Fields(cmp.Or(a.Getenv("PAGER"), defaultPager))
	if len(words) == 0 || words[0] == "cat" {
		return
	}
	_, out, errs := a.Streams()
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Stdout, cmd.Stderr = out, errs
	if cmd.Env = os.Environ(); a.Getenv("LESS") == "" {
		cmd.Env = append(cmd.Env, "LESS=FRX")
	}
	in, err := cmd.StdinPipe()
	if err != nil || cmd.Start() != nil {
		return // there is no such program
	}
	a.Progress.Show("")
	screen := a.Output.w
	a.Output.w = in
	a.OnClose(func() error {
		_ = in.Close() // the pager can have ended
		_ = cmd.Wait() // its exit code says nothing about the command
		a.Output.w = screen
		return nil
	})
}
