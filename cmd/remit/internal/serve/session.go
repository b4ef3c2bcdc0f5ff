package serve

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/cmd/remit/internal/startup"
	"github.com/remit-dev/remit/mcp"
	"github.com/remit-dev/remit/perm"
)

// openSession opens the session whose token a file holds. It creates both if
// the file is missing. Without a file, the session ends with the process.
func openSession(ctx context.Context, a *cli.App, rt *agent.Runtime, f *startup.Flags, file string) (*agent.Session, error) {
	if file != "" {
		if _, err := os.Lstat(file); err == nil {
			again := *f
			again.SessionFile, again.Roles, again.Data = file, nil, startup.Data{}
			s, err := startup.OpenSession(ctx, a, rt, &again)
			if err == nil && f.Data.Set() {
				err = f.Data.CheckSame(s)
			}
			if err != nil {
				return nil, err
			}
			if len(f.Roles) > 0 && !slices.Equal(slices.Sorted(slices.Values(f.Roles)), slices.Sorted(slices.Values(s.Principal().Roles))) {
				return nil, cli.UsageProblem("--role is of a new session; one that goes on has the roles that it began with")
			}
			return s, nil
		}
	}
	s, err := NewSession(ctx, rt, f)
	if err != nil || file == "" {
		return s, err
	}
	if _, err := secretFile(file, func() string { return s.Token() }); err != nil {
		return nil, err
	}
	return s, nil
}

// NewSession opens a session of an MCP client.
func NewSession(ctx context.Context, rt *agent.Runtime, f *startup.Flags, bounds ...agent.SessionOption) (*agent.Session, error) {
	data, err := f.Data.Options()
	if err != nil {
		return nil, err
	}
	opts := append(append(bounds, data...), agent.ClientProfile(perm.ClientFacts{Surface: mcp.Surface}))
	return rt.Session(ctx, perm.Principal{ID: f.As, Roles: f.Roles}, opts...)
}

// secretFile reads a file that only its owner can read. It creates the file if
// it is missing.
func secretFile(file string, secret func() string) (string, error) {
	text, err := startup.ReadToken(file)
	if errors.Is(err, os.ErrNotExist) {
		text = secret()
		if err = os.MkdirAll(filepath.Dir(file), 0o700); err == nil {
			err = startup.WriteToken(file, text)
		}
	}
	if err != nil {
		return "", &cli.Problem{Code: cli.ExitUsage, What: fmt.Sprintf("the file %q cannot be used", file), Why: strings.TrimPrefix(cli.PlainError(err), "open ")}
	}
	return text, nil
}

func newKey() string { return fmt.Sprintf("%x", cli.RandomBytes(32)) }
