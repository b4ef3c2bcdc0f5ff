package execute

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/cmd/remit/internal/startup"
	"github.com/remit-dev/remit/cmd/remit/internal/state"
	"github.com/remit-dev/remit/tool"
)

// Name is the name of the command.
const Name = "exec"

// ownCode is added to the exit code of an outcome that is not the program's. So
// a caller can tell remit's codes from those of most programs.
const ownCode = 100

// ExitCode returns the exit code of the process for a command that has ended.
func ExitCode(a *cli.App) int {
	if a.Code == cli.ExitOK {
		return a.ProgramCode
	}
	return ownCode + int(a.Code)
}

// longest is the time that process_run permits a program.
const longest = time.Hour

// flags are the flags of the command.
type flags struct {
	startup.Flags
	cwd     string
	timeout time.Duration
	named   []string // variables of the caller
	clean   bool     // the program gets nothing of the caller's environment
}

// Command returns remit exec.
func Command(a *cli.App) *cobra.Command {
	f := flags{Flags: startup.Flags{AtEnd: "commit"}}
	cmd := &cobra.Command{
		Use:   Name + " [flags] [--] COMMAND...",
		Short: "Run a command in the sandbox and apply its changes if the policy permits them",
		Long: "Runs one command in the sandbox, as one call of process_run in a transaction of its own. The command sees the workspace. Its\n" +
			"changes take effect after its end, if the policy permits all of them; remit revert reverts them. Its input and output are\n" +
			"yours, as they come.\n\n" +
			"Exit codes: that of the command; 128+N if signal N ended it. If remit itself did not succeed: 100 plus the exit code of\n" +
			"remit run, and a message that begins with \"remit: \": 101 internal; 102 usage; 103 denied; 104 waits for approval;\n" +
			"105 failed, timed out or not started; 106 not everything could be reverted; 107 the outcome is unknown.",
		Args: cli.WantArgs(1, -1, "a command and its arguments"),
		RunE: func(cmd *cobra.Command, args []string) error { return run(cmd.Context(), a, &f, args) },
	}
	state.AddFlags(cmd, &f.Workspace)
	startup.AddSandboxFlag(cmd, &f.Workspace)
	fl := cmd.Flags()
	fl.SetInterspersed(false) // the flags of the command are its own
	fl.StringVar(&f.cwd, "cwd", "", "`DIR` of the workspace in which the command starts (default: the current folder)")
	fl.DurationVar(&f.timeout, "timeout", longest, "`TIME` after which the command is killed, such as 90s, at most 1h; nothing of what it wrote is applied then")
	fl.StringArrayVar(&f.named, "env", nil, "pass the variable `NAME` too, whatever it holds; see docs/guides/exec.md for those that are passed anyway")
	fl.BoolVar(&f.clean, "clean-env", false, "pass nothing of the environment, and show no toolchain outside of the system's folders")
	fl.StringArrayVar(&f.Roots, "root", nil, "another root for the command, as `NAME=DIR`")
	fl.StringArrayVar(&f.Policies, "policy", nil, "policy `PATH`: a .rego file, a folder of such files, or builtin:PACK (default: the workspace policy)")
	fl.StringVar(&f.As, "principal", "agent", "`ID` of the principal: the agent or person that makes the call")
	fl.StringArrayVar(&f.Roles, "role", nil, "role `R` of the principal")
	startup.AddDataFlags(cmd, &f.Data)
	fl.StringVar(&f.OnAsk, "on-ask", "deny", "`MODE` for a call that needs approval: deny denies it, wait lets it wait for remit approve, prompt asks you at the terminal, approve-unsafe approves it in your name")
	fl.DurationVar(&f.ClaimTimeout, "claim-timeout", 0, "`TIME` for which the call waits for a file that another open transaction claims, such as 30s (default: it fails immediately)")
	return cmd
}

func (f *flags) check() error {
	if f.timeout <= 0 || f.timeout > longest {
		return cli.UsageProblem(fmt.Sprintf("--timeout %s: must be more than 0 and at most %s", f.timeout, longest))
	}
	return f.Check()
}

// arguments returns the arguments of the call.
func (f *flags) arguments(argv []string) (tool.Args, error) {
	cwd, err := f.folder()
	if err != nil {
		return nil, err
	}
	return tool.Args{"argv": argv, "cwd": cwd, "timeout_s": int((f.timeout + time.Second - 1) / time.Second)}, nil
}

// folder returns the folder in which the command starts, relative to the
// workspace.
func (f *flags) folder() (string, error) {
	root, err := state.RealFolder(f.workspace())
	if err != nil {
		return "", err
	}
	at, what := ".", "the current folder"
	if f.cwd != "" {
		at, what = f.cwd, "--cwd"
		if !filepath.IsAbs(at) {
			at = filepath.Join(root, at)
		}
	}
	if at, err = state.RealFolder(at); err != nil {
		return "", err
	}
	rel, err := filepath.Rel(root, at)
	if err != nil || !filepath.IsLocal(rel) {
		return "", &cli.Problem{
			Code: cli.ExitUsage, What: fmt.Sprintf("%s %q is not in the workspace %q", what, at, root),
			Fix: "go to a folder of the workspace, or name one: --cwd DIR; or name the workspace: --workspace DIR",
		}
	}
	return filepath.ToSlash(rel), nil
}

// workspace returns the folder of the root workspace.
func (f *flags) workspace() string {
	for _, word := range f.Roots {
		if name, dir, err := state.ParseRoot(word); err == nil && name == state.WorkspaceRoot && f.Dir == "" {
			return dir
		}
	}
	return f.Folder()
}

func run(ctx context.Context, a *cli.App, f *flags, argv []string) (err error) {
	if err := f.check(); err != nil {
		return err
	}
	args, err := f.arguments(argv)
	if err != nil {
		return err
	}
	rt, err := startup.Open(ctx, a, &f.Flags)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rt.Close()) }()
	session, err := startup.OpenSession(ctx, a, rt.Runtime, &f.Flags)
	if err == nil {
		err = startup.Announce(ctx, a, &f.Flags, rt.Journal())
	}
	if err != nil {
		return err
	}
	x := &execution{app: a, flags: f, journal: rt.Journal()}
	return x.call(ctx, session, args, os.Environ())
}
