package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/tool"
)

// What runs as tasks: calls that last, and those of tools that always are tasks.

// alwaysTasks are the tools that a client which knows no tasks cannot call.
func alwaysTasks() []string {
	return []string{"failing_job", "protocol_error_job", "confirm_delete", "multi_input"}
}

// taskAfter is when a call that lasts becomes a task. The suite's last half a second and more.
const taskAfter = 200 * time.Millisecond

func (f *fixtures) taskFixtures() []fixture {
	const seconds = `{"type":"object","properties":{"seconds":{"type":"number"},"label":{"type":"string"}},"required":["seconds"]}`
	sure := `{"confirm":{"type":"boolean"}}`
	return []fixture{
		{name: "about", about: "The first in the list, which the suite calls without tasks", run: plain(tool.Text("fixtures"))},
		{name: "greet", about: "Greets at once", input: texts("name"), run: greet},
		{name: "slow_compute", about: "Takes its time", input: seconds, run: slowCompute},
		{name: "failing_job", about: "Fails, as a task", run: func(context.Context, ctxperm.ToolContext, json.RawMessage) (tool.Result, error) {
			return tool.Result{}, errors.New("this job fails")
		}},
		{name: "protocol_error_job", about: "Asks for what its client cannot do, as a task", run: asks(sdk.InputRequestMap{"roots": &sdk.ListRootsParams{}})},
		{name: "confirm_delete", about: "Asks before it deletes, as a task", input: texts("filename"), run: asks(sdk.InputRequestMap{"sure": form("Delete it?", sure, "confirm")})},
		{name: "multi_input", about: "Asks twice at once, as a task", run: asks(sdk.InputRequestMap{"first": form("The first?", sure), "second": form("The second?", sure)})},
		{name: "test_tool_with_task", about: "Asks, and then takes its time", run: func(ctx context.Context, _ ctxperm.ToolContext, _ json.RawMessage) (tool.Result, error) {
			r, err := ask(ctx, sdk.InputRequestMap{"user_name": name()})
			if err != nil {
				return r, err
			}
			return r, wait(ctx, 5*taskAfter)
		}},
	}
}

func greet(_ context.Context, _ ctxperm.ToolContext, in json.RawMessage) (tool.Result, error) {
	var of struct{ Name string }
	if err := json.Unmarshal(in, &of); err != nil {
		return tool.Result{}, err
	}
	return tool.Text(fmt.Sprintf("Hello, %s!", of.Name)), nil
}

func slowCompute(ctx context.Context, _ ctxperm.ToolContext, in json.RawMessage) (tool.Result, error) {
	var of struct{ Seconds float64 }
	if err := json.Unmarshal(in, &of); err != nil {
		return tool.Result{}, err
	}
	if err := wait(ctx, time.Duration(of.Seconds*float64(time.Second))); err != nil {
		return tool.Result{}, err
	}
	return tool.Text("computed for " + strconv.FormatFloat(of.Seconds, 'f', -1, 64) + " s"), nil
}

func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
