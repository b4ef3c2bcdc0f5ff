package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/cmd/remit/internal/agentguard"
	"github.com/remit-dev/remit/cmd/remit/internal/approve"
	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/cmd/remit/internal/completion"
	"github.com/remit-dev/remit/cmd/remit/internal/console"
	"github.com/remit-dev/remit/cmd/remit/internal/doctor"
	"github.com/remit-dev/remit/cmd/remit/internal/execute"
	"github.com/remit-dev/remit/cmd/remit/internal/gateway"
	"github.com/remit-dev/remit/cmd/remit/internal/hook"
	"github.com/remit-dev/remit/cmd/remit/internal/journal"
	"github.com/remit-dev/remit/cmd/remit/internal/policy"
	"github.com/remit-dev/remit/cmd/remit/internal/script"
	"github.com/remit-dev/remit/cmd/remit/internal/secret"
	"github.com/remit-dev/remit/cmd/remit/internal/serve"
	"github.com/remit-dev/remit/cmd/remit/internal/startup"
	"github.com/remit-dev/remit/cmd/remit/internal/state"
	"github.com/remit-dev/remit/cmd/remit/internal/tools"
	"github.com/remit-dev/remit/cmd/remit/internal/watch"
	"github.com/remit-dev/remit/internal/version"
)

// commandTree returns the root command with the verbs of all families.
func commandTree(a *cli.App) *cobra.Command {
	root := &cobra.Command{
		Use:   "remit",
		Short: "Run the tools of agents: authorized, verified, journaled and revertible",
		Long: "remit runs calls of tools. The policy decides each call before it runs, and remit verifies the call afterwards. remit writes\n" +
			"the call on a durable journal before it returns the result. You can revert the call, also after a crash.",
		SilenceErrors: true, SilenceUsage: true, Version: version.Read().String(),
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			if err := agentguard.Check(a, cmd); err != nil {
				return err
			}
			if cmd.Name() != "run" && cmd.Name() != "serve" && cmd.Name() != "console" && cmd.Name() != "watch" && cmd.Name() != "hook" && cmd.Name() != "daemon" && cmd.Name() != execute.Name && !cmd.Hidden { // run shows its progress, serve waits, the program of exec has the terminal, and shell completion must print nothing else
				a.Progress.Show(cmd.CommandPath())
			}
			return nil
		},
	}
	root.SetIn(a.In)
	root.SetOut(a.Out)
	root.SetErr(a.Err)
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetUsageTemplate(root.UsageTemplate() + "\nExit codes: docs/reference/outcomes.md of github.com/remit-dev/remit says what each of them means.\n")
	root.SetFlagErrorFunc(cli.FlagProblem)
	gatewayVerb := serve.GatewayCommand(a)
	gatewayVerb.AddCommand(gateway.AcceptCommand(a), gateway.LoginCommand(a), gateway.LogoutCommand(a))
	root.AddCommand(
		script.RunCommand(a), execute.Command(a), journal.LogCommand(a), journal.ShowCommand(a), journal.DiffCommand(a), journal.RevertCommand(a), journal.RedoCommand(a),
		approve.PendingCommand(a), approve.ApproveCommand(a, func(ctx context.Context, f startup.Flags, id string) error { return script.Resume(ctx, a, f, id) }), approve.DenyCommand(a), approve.ApprovalCommand(a), script.ResumeCommand(a), approve.SettleCommand(a), journal.FeedbackCommand(a),
		approve.GrantsCommand(a), journal.RecoverCommand(a), journal.NodesCommand(a), journal.FsckCommand(a), journal.PruneCommand(a), journal.EraseCommand(a),
		serve.Command(a), gatewayVerb, gateway.InitCommand(a), serve.TokenCommand(a), gateway.ConnectCommand(a), gateway.DisconnectCommand(a),
		hook.Command(a), hook.DaemonCommand(a), console.Command(a, console.Verbs{Explain: policy.ExplainCall, Diagnose: doctor.DiagnoseFor}), watch.Command(a, watchVerbs()),
		tools.Command(a), secret.Command(a), policy.Command(a), doctor.Command(a), doctor.VersionCommand(a),
	)
	groupHelp(root)
	completion.Add(root, a)
	return root
}

// watchVerbs are the verbs of other families that a person uses by keys.
func watchVerbs() watch.Verbs {
	return watch.Verbs{
		WriteRequest: func(ctx context.Context, a *cli.App, at *state.Workspace, rt *agent.Runtime, id string) (watch.Request, error) {
			r, err := approve.WriteRequest(ctx, a, at, rt, id)
			return watch.Request(r), err
		},
		Give: func(ctx context.Context, a *cli.App, at *state.Workspace, rt *agent.Runtime, r watch.Reply) (changed bool, err error) {
			return approve.Give(ctx, a, at, rt, approve.Reply(r))
		},
		WriteCall: journal.WriteCall,
		WritePlan: func(ctx context.Context, a *cli.App, at *state.Workspace, rt *agent.Runtime) (watch.Plan, error) {
			saw, err := journal.WritePlan(ctx, a, at, rt)
			return watch.Plan{AtWork: saw.AtWork, Some: saw.Some, Apply: func(ctx context.Context, a *cli.App) (changed bool, err error) {
				err = journal.RevertAs(ctx, a, at, rt, saw)
				if errors.Is(err, journal.ErrPlanChanged) {
					return true, nil
				}
				return false, err
			}}, err
		},
		EndPrompts: func(ctx context.Context, a *cli.App, at *state.Workspace, rt *agent.Runtime) error {
			_, err := startup.EndPrompts(ctx, a, at, rt.Journal())
			return err
		},
	}
}
