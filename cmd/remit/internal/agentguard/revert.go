package agentguard

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/internal/hookclient"
	"github.com/remit-dev/remit/internal/hookclient/netclient"
	"github.com/remit-dev/remit/revert"
)

// Reverted is the answer of the resident process to a revert.
type Reverted struct {
	Report revert.Report `json:"report"`
	Error  string        `json:"error,omitempty"` // nothing was reverted
}

// revertBy returns a function that asks the resident process. That process
// finds out by itself which agent asks, and lets the policy decide.
func revertBy(home string) func(context.Context, cli.AgentRevert) (revert.Report, error) {
	return func(ctx context.Context, r cli.AgentRevert) (revert.Report, error) {
		out, err := request(ctx, home, r)
		if err != nil {
			return revert.Report{}, &cli.Problem{
				Code: cli.ExitDenied, What: "an agent reverts with the resident process of remit, which did not answer", Why: cli.PlainError(err),
				Fix: "a person runs the command in a terminal that was not started by the agent",
			}
		}
		if out.Error != "" {
			return revert.Report{}, &cli.Problem{Code: cli.ExitDenied, What: "this was not reverted for the agent", Why: out.Error, Fix: "a person can revert it"}
		}
		return out.Report, nil
	}
}

func request(ctx context.Context, home string, r cli.AgentRevert) (out Reverted, err error) {
	text, err := json.Marshal(r)
	if err != nil {
		return out, err
	}
	conn, err := dial(ctx, home)
	if err != nil {
		return out, err
	}
	defer func() { _ = conn.Close() }()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	if _, err := io.WriteString(conn, hookclient.RequestLine(netclient.Build(), "revert", string(text), "", "")+string(text)); err != nil {
		return out, err
	}
	all, err := io.ReadAll(conn)
	if err != nil {
		return out, err
	}
	word, body, found := bytes.Cut(all, []byte("\n"))
	switch {
	case !found:
		return out, errors.New("its answer is incomplete")
	case !bytes.HasPrefix(word, []byte(hookclient.Reply+" ")):
		return out, errors.New("it is being replaced by another version of remit; try again")
	}
	return out, json.Unmarshal(body, &out)
}
