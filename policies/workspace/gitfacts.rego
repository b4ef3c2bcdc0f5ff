# The meaning of a change for git. The package is separate so that a rule of the same
# name in another policy does not widen it.
package remit.workspace.git

# A program in the sandbox has ended, and this is one of its changes, which is applied
# or reverted. A revert covers its changes of the history.
program if {
	input.purpose in {"apply", "revert"}
	input.tool.confinement == "sandbox"
}

# Programs and file tools make git run code by the same changes.
changes := input.access.git.kind

guarded if changes in {"hook", "attributes", "link", "todo", "repository"}

guarded if count(keys) > 0

# Keys of a configuration that need approval.
keys contains key if {
	changes == "config"
	some key in input.access.git.keys
	not key in harmless
	not new_harmless(key)
}

# These run nothing and send nothing elsewhere. Git itself writes most of them.
harmless := {
	"core.repositoryformatversion", "core.filemode", "core.bare", "core.logallrefupdates", "core.ignorecase",
	"core.symlinks", "core.precomposeunicode", "core.autocrlf", "core.eol", "core.safecrlf", "core.quotepath",
	"core.abbrev", "core.sparsecheckout", "core.sparsecheckoutcone", "index.sparse", "core.commentchar",
	"extensions.worktreeconfig", "extensions.objectformat", "extensions.refstorage",
	"branch.*.remote", "branch.*.merge", "branch.*.rebase", "branch.*.description",
	"remote.*.fetch", "remote.*.tagopt", "submodule.*.url", "submodule.*.active", "submodule.active",
	"user.name", "user.email", "init.defaultbranch", "pull.rebase", "pull.ff", "merge.ff", "merge.conflictstyle",
	"rebase.autostash", "rebase.autosquash", "rerere.enabled", "gc.auto", "gc.autodetach", "maintenance.auto",
	"color.ui", "diff.renames", "status.showuntrackedfiles",
}

# The remotes of a repository that the program itself created.
new_harmless(key) if {
	input.access.git.new
	key in {"remote.*.url"}
}
