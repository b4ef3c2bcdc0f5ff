# What the pack knows of commands, paths and hosts. A second file of this package
# extends a set:
#
#	package remit.coding_agent
#
#	documentation_hosts contains "wiki.example.com"
#
#	safe_tools contains "mcp__issues__search"
package remit.coding_agent

import data.remit.lib
import data.remit.workspace.paths

# Hosts that programs in the sandbox reach without approval.
source_hosts contains host if some host in lib.source_hosts

# Hosts whose pages the client fetches without approval, with the names below
# them. A page is untrusted also there.
documentation_hosts contains host if {
	some host in {
		"go.dev", "golang.org", "python.org", "rust-lang.org", "docs.rs", "nodejs.org", "npmjs.com", "typescriptlang.org",
		"developer.mozilla.org", "w3.org", "whatwg.org", "ietf.org", "rfc-editor.org", "httpwg.org", "owasp.org", "wikipedia.org",
		"docs.oracle.com", "openjdk.org", "maven.apache.org", "gradle.org", "learn.microsoft.com", "cppreference.com", "cmake.org", "gnu.org",
		"kernel.org", "man7.org", "ruby-lang.org", "php.net", "kotlinlang.org", "swift.org", "developer.apple.com",
		"docs.docker.com", "kubernetes.io", "postgresql.org", "sqlite.org", "redis.io", "git-scm.com", "docs.github.com", "github.com",
		"raw.githubusercontent.com", "stackoverflow.com", "readthedocs.io", "react.dev", "vuejs.org", "eslint.org", "jestjs.io",
	}
}

documentation_hosts contains host if some host in source_hosts

# Tools of MCP servers, as the client names them, that run without approval.
safe_tools contains name if some name in {"TodoWrite", "TodoRead"}

# Folders outside the workspace whose files may be read: system files and toolchains.
readable_folders contains folder if {
	some folder in {
		"usr", "lib", "lib64", "bin", "opt", "nix", "etc/alternatives", "etc/os-release", "etc/ssl/certs",
		"go/pkg/mod", ".cargo/registry", ".rustup/toolchains", ".m2/repository", ".pyenv/versions", ".nvm/versions",
	}
}

# Servers that give public documentation, by the names under which people add
# them. A search of theirs is like a search of the web.
documentation_servers contains name if some name in {"context7", "deepwiki", "microsoft-docs", "microsoft_docs", "aws-documentation", "aws_documentation"}

documents if {
	parts := split(input.call.args.tool, "__")
	count(parts) == 3
	parts[0] == "mcp"
	parts[1] in documentation_servers
	not tells
}

# An input that can carry data away.
tells if {
	walk(input.call.args.input, [_, text])
	is_string(text)
	regex.match(concat("", [`^.{241}|[A-Za-z0-9+%]{40,}|`, secret_text]), text)
}

tells if not is_object(input.call.args.input)

# Ports of this machine that command administration, not an own server.
control_ports contains port if some port in {"4646", "5432", "5984", "8001", "8200", "8300", "8500", "8600"}

outside := concat("", ["/", input.access.resource.path]) if input.access.resource.root == "outside"

readable if {
	some folder in readable_folders
	contains(concat("", [outside, "/"]), concat("", ["/", folder, "/"]))
	not regex.match("^/(home|root|Users)/.*/(usr|lib|lib64|bin|opt|nix|etc)/", outside)
	not regex.match("^/(tmp|var|proc|sys|dev|run|mnt|media)/", outside)
}

# Files that hold passwords, tokens, or what people typed.
private if regex.match(private_path, lower(outside))

private_path := concat("|", [
	`^/(proc|sys|dev|run)(/|$)`, `^/etc/(shadow|gshadow|sudoers|ssl/private|ssh/.*_key)`, `^/var/(lib|spool|log|run|mail)(/|$)`,
	`/\.[a-z_]*(history|hist|hsts)$`, `/\.(mozilla|thunderbird|password-store|azure|terraform\.d|local/share/keyrings|config/op)(/|$)`,
	`/(google-chrome|chromium|bravesoftware|firefox|chrome|safari|keychains|1password|bitwarden)[^/]*(/|$)`,
	`/\.config/(gh|glab-cli|gcloud|rclone|remit|doctl|heroku)(/|$)`, `/\.(m2/settings.*\.xml|gradle/gradle\.properties|git-credential.*|vault-token|boto|s3cfg)$`,
	`/\.(claude/\.credentials\.json|claude\.json|codex/auth\.json|gemini/.*creds.*|cursor/.*token.*)$`, `/\.local/(state|share)/(remit|opencode)(/|$)`,
])

# Files outside the workspace that start programs or decide about them.
startup if regex.match(startup_path, lower(outside))

startup_path := concat("|", [
	`^/(etc|usr|bin|sbin|lib|lib64|boot|opt|root/\.|proc|sys|dev|var|run|nix)(/|$)`,
	`/\.(bash|zsh|k?sh|fish|profile|login|z|inputrc|xprofile|xinitrc|pam_environment|envrc|direnvrc|vimrc|emacs|gdbinit|pythonrc|npmrc|yarnrc|condarc|curlrc|wgetrc)[^/]*$`,
	`/\.git(config|attributes|ignore)?$`, `/\.git/`, `/\.config/(systemd|autostart|git|fish|environment\.d|pip|remit|nvim|code|containers|opencode)(/|$)`,
	`/\.(ssh|gnupg|claude|codex|gemini|cursor|opencode|vscode|aws|kube|docker|cargo|pip|local/bin|local/share/(applications|systemd))(/|$)`,
	`/library/launch(agents|daemons)/`, `/(bin|cron[^/]*|usercustomize\.py|sitecustomize\.py)(/|$)`,
])

scratch if regex.match(`^/(tmp|var/tmp)/([^/]+/)?[^/]+$`, outside)

# Files of the workspace that start programs for the person's own tools.
starter if regex.match(starter_path, lower(input.access.resource.path))

starter_path := concat("|", [
	`(^|/)\.(claude|codex|gemini|cursor|opencode)/(settings|hooks|config|plugins?|mcp|agents?|commands|skills|environment|permissions)`,
	`(^|/)(\.mcp\.json|opencode\.jsonc?|\.devcontainer(/.*|\.json)|\.husky/.*|\.pre-commit-config\.ya?ml|lefthook\.ya?ml)$`,
	`(^|/)\.vscode/(tasks|settings|launch|mcp)\.json$`, `(^|/)\.idea/(workspace\.xml|runconfigurations/.*)$`, `(^|/)\.(envrc|gitmodules|npmrc|yarnrc\.yml)$`,
])

# What an edit writes.
written := concat("\n", [text |
	some name in ["content", "new", "patch"]
	text := object.get(input.call.args, name, "")
])

# A changed pipeline with the repository's secrets, or a package that runs a
# command when it is installed.
spreads if {
	regex.match(`(^|/)(\.github/(workflows|actions)/.*|\.gitlab-ci\.yml|\.circleci/.*|jenkinsfile|azure-pipelines.*\.yml)$`, lower(input.access.resource.path))
	regex.match(`secrets|pull_request_target|id-token|GITHUB_TOKEN|self-hosted|curl|wget|base64`, written)
}

spreads if {
	input.access.resource.name == "package.json"
	regex.match(lifecycle, written)
}

lifecycle := `(pre|post)install|"(install|prepare|prepublish|prepack)"\s*:`

# Addresses of this machine, of its network, and of the cloud's metadata. A number
# in another notation is an address, too.
own_address(host) if regex.match(`^(localhost|.*\.localhost|.*\.local|.*\.internal|metadata|metadata\..*|instance-data)\.?$`, host)

own_address(host) if regex.match(`^(0|10|127|169\.254|192\.168|172\.(1[6-9]|2[0-9]|3[01])|100\.(6[4-9]|[7-9][0-9]|1[01][0-9]|12[0-7]))(\.[0-9]+)*$`, host)

own_address(host) if regex.match(`^(\[.*\]?|.*:.*|[0-9]+|0x.*|0[0-9]+\..*|.*\.0x[0-9a-f]*)$`, host)

documented(host) if {
	some known in documentation_hosts
	host in {known, concat("", ["www.", known])}
}

documented(host) if {
	some known in documentation_hosts
	endswith(host, concat("", [".", known]))
}

# An address or a search that can carry data away.
carries if {
	some name in ["url", "query"]
	text := object.get(input.call.args, name, "")
	count(text) > 240
}

carries if regex.match(carrying, object.get(input.call.args, "url", ""))

carrying := `[A-Za-z0-9+%]{40,}|[?&#][^=&#]*=[^&#]{64,}|//[^/]*@`

carries if regex.match(secret_text, object.get(input.call.args, "query", ""))

secret_text := `(AKIA|ASIA)[A-Z0-9]{12,}|gh[pousr]_[A-Za-z0-9]{16,}|sk-[A-Za-z0-9_-]{16,}|-----BEGIN|eyJ[A-Za-z0-9_-]{16,}\.|[A-Za-z0-9+/_-]{48,}`
