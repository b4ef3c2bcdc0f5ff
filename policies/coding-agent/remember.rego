# What an approval of a command covers beside it. Only commands that are known word
# for word, and whose meaning no file of the workspace decides, have keys: what a
# compose file, a script or a configuration says can change after the approval.
package remit.coding_agent

# The words of each command, if nothing of the text is known only at run time. A text
# that sets variables or opens files has none.
known_commands := [[word | some word in array.concat([one.program], one.args)] | some one in input.call.script.commands] if {
	input.call.script.dynamic == false
	not input.call.script.error
	every one in input.call.script.redirects {
		one.path == "/dev/null"
	}
	not regex.match(`(^|[|;&({\s])[A-Za-z_]\w*\+?=`, regex.replace(command, `^PGPASSWORD=[\w.-]+ `, ""))
}

# The keys of a command outside the sandbox.
keys contains key if {
	not input.call.args.background
	every words in known_commands {
		acts(words)
	}
	some words in known_commands
	some key in keys_of(words)
}

acts(words) if filters(words)

acts(words) if count(keys_of(words)) > 0

# Programs that read their input only.
filters(words) if regex.match(`^(true|(head|tail)( -n?\d+| -[nc] \d+)?|wc( -[lcw])?|sort( -[nru]+)?|uniq( -c)?|jq( -[rcS]+)?( \.[\w.]*| length| keys)?|sleep \d{1,2})$`, concat(" ", words))

filters(words) if {
	words[0] == "grep"
	count(words) > 1
	every word in array.slice(words, 1, count(words) - 1) {
		regex.match(`^-[ciEFnovwx]+$`, word)
	}
	regex.match(`^[\w.][\w .:-]*$`, words[count(words) - 1])
}

keys_of(words) := {sprintf("%s requests to localhost:%s", [curl_method(words), url_port(url)]) | some url in local_urls(words)} if words[0] == "curl"

keys_of(words) := {sprintf("docker %s %s", [words[1], name]) | some name in array.slice(words, 2, count(words))} if {
	words[0] == "docker"
	words[1] in {"start", "stop", "restart"}
	every name in array.slice(words, 2, count(words)) {
		regex.match(`^[A-Za-z0-9][\w.-]*$`, name)
	}
}

keys_of(words) := {sprintf("psql %s %s", [access, database(words)]) | some access in statement_access(words)} if words[0] == "psql"

# The words after a word that takes one. No value may begin with "-", so that each
# word is either an option or none.
values(words, options) := {word |
	some i, word in words
	i > 1
	regex.match(options, words[i - 1])
}

positional(words, options) := [word |
	some i, word in words
	i > 0
	not startswith(word, "-")
	not regex.match(options, words[i - 1])
]

curl_options := `^(-[XdHwmo]|--(request|data|data-raw|json|header|max-time|retry))$`

# A request whose parts are all in the text, and whose answer is printed only.
plain_curl(words) if {
	words[0] == "curl"
	every i, word in words {
		plain_curl_word(words, i, word)
	}
	not regex.match(curl_options, words[count(words) - 1])
	count(values(words, `^(-X|--request)$`)) < 2
}

plain_curl_word(_, 0, _) := true

plain_curl_word(words, i, word) if {
	i > 0
	not regex.match(curl_options, words[i - 1])
	regex.match(concat("", [`^-[sSfiIvgL]+$|^--(silent|fail|fail-with-body|head|include|show-error|location)$|`, curl_options]), word)
}

plain_curl_word(words, i, word) if {
	i > 0
	not startswith(word, "-")
	not startswith(word, "@")
	plain_curl_value(words[i - 1], word)
}

plain_curl_value(option, word) if {
	option in {"-X", "--request"}
	word in {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}
}

plain_curl_value(option, _) if option in {"-d", "--data", "--data-raw", "--json"}

plain_curl_value(option, word) if {
	option in {"-H", "--header"}
	regex.match(`^[A-Za-z-]+: `, word)
	not regex.match(`(?i)^(host|x-http-method.*|x-method.*):`, word)
}

plain_curl_value("-w", word) if not contains(word, "%output")

plain_curl_value("-o", word) if word == "/dev/null"

plain_curl_value(option, word) if {
	option in {"-m", "--max-time", "--retry"}
	regex.match(`^\d{1,3}$`, word)
}

plain_curl_value(option, word) if {
	not regex.match(curl_options, option)
	regex.match(`^(https?://)?[\w.-]+(:\d+)?(/[\w./=%?&,:+~-]*)?$`, word)
}

curl_urls(words) := positional(words, curl_options) if plain_curl(words)

curl_method(words) := method if {
	some method in values(words, `^(-X|--request)$`)
} else := "POST" if {
	count(curl_data(words)) > 0
} else := "GET"

curl_data(words) := values(words, `^(-d|--data|--data-raw|--json)$`)

local_urls(words) := urls if {
	urls := curl_urls(words)
	count(urls) == 1
	not regex.match(` -\w*L| --location`, concat(" ", words))
	every url in urls {
		regex.match(`^(https?://)?(localhost|127\.0\.0\.1):[3458]\d{3}(/[\w./=%?&,:+~-]*)?$`, url)
		not url_port(url) in control_ports
	}
}

url_port(url) := regex.replace(url, `^(https?://)?[^/:]+:(\d+).*$`, "$2")

# The hosts of a command that does nothing but get pages. Its addresses are too short
# to carry data away.
plain_hosts contains host if {
	every words in known_commands {
		gets_pages(words)
	}
	some words in known_commands
	some url in curl_urls(words)
	host := url_host(url)
}

gets_pages(words) if filters(words)

gets_pages(words) if {
	curl_method(words) == "GET"
	count(curl_data(words)) == 0
	count(values(words, `^(-H|--header)$`)) == 0
	count(curl_urls(words)) > 0
	every url in curl_urls(words) {
		startswith(url, "https://")
		count(url) <= 240
		not regex.match(carrying, url)
	}
}

page_hosts contains host if {
	every one in plain_hosts {
		documented(one)
	}
	some host in plain_hosts
}

page_keys contains sprintf("pages of %s", [host]) if {
	some host in named_hosts
	named_hosts == plain_hosts
}

psql_options := `^(-[AtqXx]*c|-[hpUd])$`

# A statement for a named database of this machine.
database(words) := sprintf("localhost:%s/%s as %s", [port, name, user]) if {
	psql_known(words)
	count(psql_target(words)) == 1
	some [port, name, user] in psql_target(words)
}

psql_known(words) if {
	every i, word in words {
		psql_word(words, i, word)
	}
	not regex.match(psql_options, words[count(words) - 1])
}

psql_word(_, 0, _) := true

psql_word(words, i, word) if {
	i > 0
	not regex.match(psql_options, words[i - 1])
	regex.match(concat("", [`^-[AtqXx]+$|`, psql_options]), word)
}

psql_word(words, i, word) if {
	i > 0
	not startswith(word, "-")
	psql_value(words[i - 1], word)
}

psql_value("-h", word) if word in {"localhost", "127.0.0.1"}

psql_value("-p", word) if regex.match(`^\d{1,5}$`, word)

psql_value(option, word) if {
	option in {"-U", "-d"}
	regex.match(`^[\w-]+$`, word)
}

psql_value(option, _) if regex.match(`^-[AtqXx]*c$`, option)

psql_value(option, word) if {
	not regex.match(psql_options, option)
	regex.match(concat("", [`^[\w-]+$|`, psql_url]), word)
}

psql_url := `^postgres(ql)?://(([\w-]+)(:[\w-]+)?@)?(localhost|127\.0\.0\.1)(:(\d+))?/([\w-]+)$`

psql_target(words) := {[port, name, user] |
	some url in positional(words, psql_options)
	count(positional(words, psql_options)) == 1
	count(values(words, `^-[hpUd]$`)) == 0
	regex.match(psql_url, url)
	port := or_default(regex.replace(url, psql_url, "$7"), "5432")
	user := regex.replace(url, psql_url, "$3")
	name := regex.replace(url, psql_url, "$8")
} | {[port, name, user] |
	count(values(words, `^-h$`)) == 1
	names := values(words, `^-d$`) | {word | some word in positional(words, psql_options)}
	count(names) == 1
	some name in names
	regex.match(`^[\w-]+$`, name)
	count(values(words, `^-U$`)) < 2
	count(values(words, `^-p$`)) < 2
	user := concat("", values(words, `^-U$`))
	port := or_default(concat("", values(words, `^-p$`)), "5432")
}

or_default("", value) := value

or_default(text, _) := text if text != ""

# A statement that only reads covers reads. One that inserts covers both.
statement_access(words) := {"reads"} if {
	count(statements(words)) == 1
	every text in statements(words) {
		reading(text)
	}
} else := {"reads", "inserts into"} if {
	count(statements(words)) == 1
	every text in statements(words) {
		inserting(text)
	}
}

statements(words) := {lower(trim_space(text)) | some text in values(words, `^-[AtqXx]*c$`)}

reading(text) if regex.match(`^\\(d[a-z]{0,3}|l)\+?( [\w.]+)?$`, text)

reading(text) if {
	regex.match(`^(select|show) [\w\s.,()*=<>':+-]*;?$`, text)
	simple_sql(text)
	not regex.match(`\b(into|insert)\b`, text)
}

inserting(text) if {
	regex.match(`^insert into [\w.]+\s*(\([\w\s,]+\))?\s*values\s*[\w\s.,()*=<>':+-]*;?$`, text)
	simple_sql(regex.replace(text, `^insert into [\w.]+\s*\(`, "insert into x values ("))
}

# No comment, no statement that changes or runs more, and only functions that
# compute.
simple_sql(text) if {
	not regex.match(`--|\b(drop|truncate|delete|update|alter|create|grant|revoke|copy|program|do|call|execute|merge|lock|set|reset|notify|listen|with|union|pg_\w*|lo_\w*|dblink\w*)\b`, text)
	every found in regex.find_all_string_submatch_n(`([\w.]+)\s*\(`, text, -1) {
		found[1] in sql_functions
	}
}

sql_functions := {
	"count", "sum", "avg", "min", "max", "coalesce", "lower", "upper", "length", "now", "version", "date_trunc", "round", "abs",
	"values", "in", "exists", "and", "or", "not", "from", "where", "on", "select", "distinct", "current_database",
}
