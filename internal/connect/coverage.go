package connect

import (
	"fmt"
	"strings"
)

// Coverage says how much of what a client does leads to remit.
type Coverage struct {
	// OwnTools is the state of the hooks, or "" for a client without hooks.
	OwnTools HookState `json:"own_tools,omitempty"`
	// OnFailure says what happens to a call of an own tool when its hook fails.
	OnFailure failure   `json:"on_failure,omitempty"`
	Servers   FileState `json:"servers"`
	Notes     []string  `json:"notes,omitempty"`
}

// failure is what happens to a call whose hook fails.
type failure string

const (
	failBlocks  failure = "blocked"
	failLate    failure = "blocked, unless by time-out" // a hook that takes too long lets the call run
	failRunning failure = "runs"
)

func blocked(Environment) failure { return failBlocks }

// blockedUnlessLate is a client that only understands exit code 2. See
// [Environment.shellHook].
func blockedUnlessLate(p Environment) failure {
	if p.OS == "windows" {
		return failRunning
	}
	return failLate
}

// coverage summarizes the files of a client.
func (c Client) coverage(p Environment, files []File) (all Coverage) {
	some := map[FileState]bool{}
	all.Servers = StateEmpty
	for _, f := range files {
		if f.tools {
			all.OwnTools = better(all.OwnTools, f.Hooks)
		}
		some[f.State] = true
	}
	switch {
	case some[StateMixed] || some[StateRouted] && some[StateDirect]:
		all.Servers = StateMixed
	case some[StateRouted]:
		all.Servers = StateRouted
	case some[StateDirect]:
		all.Servers = StateDirect
	}
	for _, f := range files {
		if f.off != "" && all.OwnTools != "" && all.OwnTools != HooksOff {
			all.OwnTools = HooksOff
			all.Notes = append(all.Notes, f.Path+": "+f.off)
		}
	}
	switch all.OwnTools {
	case "":
		return all
	case HooksOn, HooksPartial, HooksOther:
		if c.advice != "" {
			all.Notes = append(all.Notes, c.advice)
		}
		all.Notes = append(all.Notes, Limits(p.OS)...)
	case HooksStale:
		all.Notes = append(all.Notes, "its hooks start a remit that is missing: remit connect "+c.name+" writes the current path")
	case HooksOff:
	}
	all.OnFailure = c.guard(p)
	return all
}

// better returns the state that counts of the hooks in two scopes. Hooks that
// start a missing remit count first: they can block every call.
func better(a, b HookState) HookState {
	for _, s := range []HookState{HooksStale, HooksOn, HooksOther, HooksPartial, HooksOff} {
		if a == s || b == s {
			return s
		}
	}
	return ""
}

// switchedOff says that a file turns off all hooks of the client.
func (src source) switchedOff(text []byte) string {
	if len(src.off.path) == 0 {
		return ""
	}
	_, body, err := opened(text)
	if err != nil || blank(body) || tooDeep(body) >= 0 {
		return ""
	}
	v, err := src.format.values(body)
	if err != nil || at(v, src.off.path) != any(src.off.value) {
		return ""
	}
	return fmt.Sprintf("%s is %t, which turns off every hook", strings.Join(src.off.path, "."), src.off.value)
}
