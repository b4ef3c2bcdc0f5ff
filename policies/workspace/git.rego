# Changes of a repository by a program or a file tool. The history runs nothing: a
# program may change it, and a revert covers it. Each change that makes the user's
# git run code later needs approval.
package remit

import data.remit.workspace.git

ask contains "git runs this hook later" if git.changes == "hook"

ask contains sprintf("this configuration decides what git runs and where it looks: %s", [concat(", ", git.keys)]) if count(git.keys) > 0

ask contains "git applies the filters that these attributes name" if git.changes == "attributes"

ask contains "this leads git to another folder, whose configuration and hooks then count" if git.changes == "link"

ask contains "a continued rebase runs the commands of these steps" if git.changes == "todo"

ask contains "git treats a folder with a HEAD as a repository, and runs what its configuration says" if git.changes == "repository"

hint contains "git can run all else without approval; leave hooks and configuration alone, or set a value for one command: git -c KEY=VALUE" if git.guarded
