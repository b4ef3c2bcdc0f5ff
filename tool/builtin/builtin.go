// Package builtin returns the built-in tools: those for files, for programs,
// for SQL databases and for the web. ProgramTool and HTTPTool make a tool from
// a command line and from a call of a REST service.
//
// The tools act only through the handles of package ctxperm/files,
// ctxperm/process, ctxperm/database and ctxperm/web. The needs of a tool name
// no root, no database and no host. The runtime names these, and the grant of
// the session and the policy decide each access.
package builtin

import (
	"encoding/json"

	"github.com/remit-dev/remit/ctxperm/process"
	"github.com/remit-dev/remit/ctxperm/web"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/provenance"
	"github.com/remit-dev/remit/tool"
	databasetools "github.com/remit-dev/remit/tool/builtin/internal/database"
	filetools "github.com/remit-dev/remit/tool/builtin/internal/files"
	programtools "github.com/remit-dev/remit/tool/builtin/internal/process"
	webtools "github.com/remit-dev/remit/tool/builtin/internal/web"
)

// Files returns the tools for files: file_read, file_list, file_search,
// file_write, file_edit, file_delete, file_move, file_copy and dir_create. A
// call without a root means the root "workspace".
func Files() []tool.Tool { return filetools.Tools() }

// Programs returns the tools that run programs in the root "workspace", in a
// sandbox: process_run and shell_run. shell_run uses bash if the machine has
// it, and sh otherwise. The host program calls Main of ctxperm/process at the
// start of main.
func Programs() []tool.Tool { return programtools.Tools() }

// NetworkPrograms returns the same tools as Programs, for programs that reach
// hosts through a proxy. During the call, the policy decides each host as
// connect https://HOST, with the method CONNECT, or connect http://HOST. The
// runtime needs a driver of ctxperm/web. A session whose grant has no such
// access runs programs as Programs does. A revert restores files; what a
// program sent stays sent.
func NetworkPrograms() []tool.Tool { return programtools.NetworkTools() }

// ProgramTool returns a tool whose calls run one program each, in a sandbox.
// The function cmd computes the command line from the input of a call. It has
// no side effects, and its error means invalid input.
//
// ProgramTool sets Execute and AccessFor of the spec. Defaults:
//
//   - Needs: any program, and every file that the session holds.
//   - EffectClass: reversible. If cmd requests the network, it must do so in
//     each call, and the spec must name another class, but not pure.
//   - Verify: verify.Changes, if the class is reversible.
func ProgramTool(s tool.Spec, cmd func(in json.RawMessage) (process.Cmd, error)) (tool.Tool, error) {
	return programtools.Program(s, cmd)
}

// ParseScript returns what a script of a shell runs, for tool.Spec.ParseScript.
// It follows scripts inside of scripts, and says where the text does not tell.
// It runs nothing.
func ParseScript(script string) *perm.ScriptFacts { return programtools.ParseScript(script) }

// Databases returns the tools for SQL databases: sql_query and sql_execute.
// The runtime needs a driver of ctxperm/database.
func Databases() []tool.Tool { return databasetools.Tools() }

// Web returns the tool http_fetch. The runtime needs a driver of ctxperm/web.
func Web() []tool.Tool { return webtools.Tools() }

// HTTPCall describes one call of a REST service. {name} in a URL is an
// argument, as one segment of the path or one value of the query. The
// arguments that no URL names are the members of the JSON body.
type HTTPCall struct {
	Name        string   `json:"name"`
	Description string   `json:"description"`
	Version     string   `json:"version,omitempty"`
	Tags        []string `json:"tags,omitempty"`

	// Method is the method of the request. GET and HEAD make a pure tool.
	Method string `json:"method"`
	// URL is the URL of the request, such as
	// https://api.example.com/v1/items/{id}?notify={notify}.
	URL     string            `json:"url"`
	Headers map[string]string `json:"headers,omitempty"`
	// Input is the JSON Schema of the arguments. Default: each {name} of the
	// URL, as a string.
	Input json.RawMessage `json:"input,omitempty"`
	// Roles say what the arguments do, by JSON pointer, such as
	// {"/text": "content"}. Default: authority, the strictest.
	Roles provenance.Roles `json:"roles,omitempty"`
	// Secret is the name of the secret that the credential for the service
	// uses. Empty: the service needs none.
	Secret string `json:"secret,omitempty"`

	// Keyed makes each attempt of a call send the operation key as
	// Idempotency-Key.
	Keyed bool `json:"keyed,omitempty"`
	// Undo is the compensation of the call. {name} in its URLs is an argument,
	// or else a member of the service's response. Default: none, which makes
	// the tool a pivot unless its method is GET or HEAD.
	Undo *web.Compensation `json:"undo,omitempty"`
}

// HTTPTool returns the tool that makes a call of a REST service. If the call
// has a compensation, the tool is compensable: its Verify asks the service,
// also after a crash, and a revert leaves an item alone that another client
// changed. The runtime needs a driver of ctxperm/web.
func HTTPTool(c HTTPCall) (tool.Tool, error) { return webtools.HTTPCall(webtools.Call(c)) }
