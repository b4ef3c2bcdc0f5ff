package agentguard

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/cmd/remit/internal/state"
	"github.com/remit-dev/remit/internal/lineage"
)

// marks are variables that clients set for the programs that they start.
var marks = map[string]string{
	"CLAUDECODE": "claude-code", "CODEX_SANDBOX": "codex", "CODEX_THREAD_ID": "codex", "GEMINI_CLI": "gemini-cli", "OPENCODE": "opencode", "CURSOR_AGENT": "cursor",
}

// Check refuses a command that an agent must not run, if an agent started it.
// For the other commands it sets App.Agent.
func Check(a *cli.App, cmd *cobra.Command) error {
	may, name := permissionOf(cmd)
	if may == shows {
		return nil // not even the agent is looked for: hooks are started often
	}
	home, agent, err := find(a, cmd)
	if err != nil {
		return &cli.Problem{
			Code: cli.ExitDenied, What: "remit " + name + " does not run here: a coding agent can be behind this command", Why: cli.PlainError(err),
			Fix: "run the command in a terminal that was not started by an agent",
		}
	}
	if agent == nil {
		return nil
	}
	if may == refused {
		return agent.AgentProblem("remit " + name + " was not run")
	}
	agent.Revert = revertBy(home)
	a.Agent = agent
	return nil
}

// find returns the agent that started this process, or nil, with the folder for
// state that has its records.
func find(a *cli.App, cmd *cobra.Command) (home string, _ *cli.Agent, err error) {
	who := cli.UnknownCaller()
	if a.Caller != nil {
		who = a.Caller()
	}
	dir := ""
	if f := cmd.Flag("state"); f != nil {
		dir = f.Value.String()
	}
	for _, home := range append(homes(a, dir), inherited(who)...) {
		all, err := records(home)
		if err != nil {
			return "", nil, fmt.Errorf("the clients that run are unknown: %w", err)
		}
		agent, err := above(a, who, all)
		if agent != nil || err != nil {
			return home, agent, err
		}
	}
	return "", nil, nil
}

// above returns the agent of one of the records that is above a process.
func above(a *cli.App, who cli.Caller, all []Record) (*cli.Agent, error) {
	all = slices.DeleteFunc(all, func(r Record) bool { return who.Unknown == nil && !r.counts(who.Chain) })
	if len(all) == 0 {
		return nil, nil
	}
	if who.Unknown != nil && !errors.Is(who.Unknown, lineage.ErrUnknown) {
		return nil, fmt.Errorf("the parents of this process are unknown: %w", who.Unknown)
	}
	if who.Unknown != nil && who.Terminal != nil { // a person can be behind it, and an agent as well
		return &cli.Agent{Client: all[0].Client, Why: all[0].Client + " works, " + who.Unknown.Error() + ", and " + who.Terminal.Error()}, nil
	}
	var found *cli.Agent
	for _, r := range all {
		why := r.Process.Bars(who.Chain)
		if why == "" || errors.Is(who.Unknown, lineage.ErrUnknown) {
			continue
		}
		if found == nil {
			found = &cli.Agent{Client: r.Client, Why: strings.Replace(why, "which asked", "the client "+r.Client, 1)}
		}
		if r.contains(who.Chain) { // only then the session is certain
			found.Sessions = append(found.Sessions, r.Journal)
		}
	}
	if found != nil {
		return found, nil
	}
	for name, client := range marks {
		runs := slices.ContainsFunc(all, func(r Record) bool { return r.Client == client })
		if runs && a.Getenv(name) != "" {
			return &cli.Agent{Client: client, Why: "the environment has " + name + ", which " + client + " sets for the programs that it starts"}, nil
		}
	}
	return nil, nil
}

// contains reports whether the client is above a process.
func (r Record) contains(c lineage.Chain) bool {
	p := r.Process.Processes[0]
	return slices.ContainsFunc(c.Links, func(l lineage.Link) bool { return l.PID == p.PID && l.Start == p.Start })
}

// homes returns the folders for state that the command can reach: the user's,
// and the one above a state folder, such as one that a flag names. An agent can change the
// environment, but then it acts on another journal, or as another node of a
// shared one: inherited finds its folder for that.
func homes(a *cli.App, dir string) (all []string) {
	if home, err := state.Home(a.Getenv); err == nil {
		all = append(all, home)
	}
	if dir == "" {
		return all
	}
	dir, err := filepath.Abs(dir)
	if err == nil {
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			dir = real
		}
		for up := filepath.Dir(dir); ; up = filepath.Dir(up) {
			if _, err := os.Lstat(filepath.Dir(folder(up))); err == nil && !slices.Contains(all, up) {
				all = append(all, up)
			}
			if up == filepath.Dir(up) {
				break
			}
		}
	}
	return all
}
