package hooks_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/remit-dev/remit/hooks"
)

// A coding agent runs a hook before it uses a tool. The hook's input becomes an event, and the server's answer the hook's output. This
// server has no workspace, so it denies the use.
func Example() {
	srv := hooks.New("/usr/bin/remit", nil, func(context.Context, string) (*hooks.Workspace, error) {
		return nil, errors.New("no workspace is open")
	})
	client, _ := hooks.Find("claude-code")
	event, err := client.Parse([]byte(`{"session_id": "s1", "cwd": "/src", "hook_event_name": "PreToolUse",
		"tool_name": "Bash", "tool_use_id": "u1", "tool_input": {"command": "make"}}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	answer := srv.Handle(context.Background(), client, event, "")
	fmt.Print(client.Reply(event, answer).Stdout)
	// Output:
	// {"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"remit cannot decide this call, so it does not run: no workspace is open"}}
}
