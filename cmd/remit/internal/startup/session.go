package startup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/cmd/remit/internal/state"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
)

// maxToken is larger than any token, in bytes.
const maxToken = 1 << 10

// OpenSession opens the session of a script: a new one, or the one whose token
// the session file holds.
func OpenSession(ctx context.Context, a *cli.App, rt *agent.Runtime, f *Flags) (*agent.Session, error) {
	who := perm.Principal{ID: f.As, Roles: f.Roles}
	how := []agent.SessionOption{agent.Heard(f.UserTexts...)}
	data, err := f.Data.Options()
	if err != nil {
		return nil, err
	}
	if f.SessionFile == "" {
		return rt.Session(ctx, who, append(data, how...)...)
	}
	token, err := ReadToken(f.SessionFile)
	if errors.Is(err, os.ErrNotExist) {
		s, err := rt.Session(ctx, who, append(data, how...)...)
		if err != nil {
			return nil, err
		}
		return s, f.keepToken(s.Token())
	}
	if err != nil {
		return nil, &cli.Problem{Code: cli.ExitUsage, What: fmt.Sprintf("the session file %q cannot be read", f.SessionFile), Why: cli.PlainError(err)}
	}
	s, err := rt.ResumeSession(ctx, token, how...)
	var node *agent.NodeError
	switch {
	case errors.As(err, &node):
		return nil, &cli.Problem{
			Code: cli.ExitUsage, What: fmt.Sprintf("the session of %q cannot go on here", f.SessionFile), Why: node.Error(),
			Fix: "run it on that node; list the nodes: " + f.Hint("nodes") + "; or name another --session file, for a session of this node",
		}
	case errors.Is(err, agent.ErrUnknownToken):
		return nil, &cli.Problem{
			Code: cli.ExitUsage, What: fmt.Sprintf("the session of %q is not on this journal", f.SessionFile), Why: err.Error(),
			Fix: "name its --workspace or --state, or remove the file to begin another",
		}
	case errors.Is(err, revert.ErrBusy):
		return nil, &cli.Problem{Code: cli.ExitUsage, What: "the session is in use", Why: err.Error(), Fix: "wait until the other run has ended"}
	case err != nil:
		return nil, err
	case f.AsSet && s.Principal().ID != f.As:
		return nil, cli.UsageProblem(fmt.Sprintf("--principal %q is not who the session of %q is of, which is %q", f.As, f.SessionFile, s.Principal().ID))
	case f.Data.Set():
		return nil, errOtherData()
	case len(f.Roles) > 0:
		return nil, cli.UsageProblem("--role is of a new session; one that goes on has the roles that it began with")
	}
	return s, nil
}

// checkTokenOutside rejects a session file inside a root: a call could read the token
// and act as the principal.
func (f *Flags) checkTokenOutside(folders []string) error {
	if f.SessionFile == "" {
		return nil
	}
	dir := state.Workspace{StateDir: filepath.Dir(f.SessionFile)}
	if err := dir.CheckStateOutside(folders); err != nil {
		return &cli.Problem{
			Code: cli.ExitUsage, What: fmt.Sprintf("the session file %q lies inside a root", f.SessionFile),
			Why: "calls could read it, and go on with the session", Fix: "name a file in another folder",
		}
	}
	return nil
}

// ReadToken reads a token file.
func ReadToken(name string) (token string, err error) {
	file, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	text, err := io.ReadAll(io.LimitReader(file, maxToken))
	return strings.TrimSpace(string(text)), err
}

// keepToken creates the session file, which was missing.
func (f *Flags) keepToken(token string) error {
	err := createToken(f.SessionFile, token)
	if errors.Is(err, os.ErrExist) {
		return &cli.Problem{
			Code: cli.ExitUsage, What: fmt.Sprintf("the session file %q cannot be written", f.SessionFile), Why: "another command made it at the same time, for a session of its own",
			Fix: "repeat the command: it goes on with the session of that file",
		}
	}
	return tokenProblem(f.SessionFile, err)
}

// WriteToken creates a token file that only its owner can read. It returns an
// error if the file exists, because the file can hold the token of another
// session.
func WriteToken(name, token string) error { return tokenProblem(name, createToken(name, token)) }

func createToken(name, token string) error {
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(file, token)
	return errors.Join(err, file.Sync(), file.Close())
}

func tokenProblem(name string, err error) error {
	if err != nil {
		return &cli.Problem{Code: cli.ExitUsage, What: fmt.Sprintf("the session file %q cannot be written", name), Why: cli.PlainError(err)}
	}
	return nil
}
