// Package settings configures tools: what an administrator locked, then what a user set,
// then the default. Each value knows its layer and where it was written.
//
// A tool declares its settings ([tool.Spec].Settings) and may check them itself. One that
// is not configured is not offered to a model, and a call of it is invalid; [Status] says
// which check fails. A secret is never in a file of settings: its value is a reference
// such as secret://name, which the tool opens by [Secret.Open] while it runs.
//
// Files are strict JSON:
//
//	{"schemaVersion": 1, "by": "ops", "tools": {"forecast": {"region": "eu", "token": "secret://weather"}}}
//
// "by" names the author. A file of locked settings must have it, because the
// error of a refused setting names the author. To select one of several versions
// of a tool, write "forecast@1.2.0". No error of this package repeats a value.
package settings
