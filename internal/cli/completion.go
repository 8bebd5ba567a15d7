package cli

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/alecthomas/kong"
)

// completionNode is one place in the command line: what may follow there.
type completionNode struct {
	path     string // "skill list"; empty for the program itself
	commands []completionWord
	flags    []completionWord
}

type completionWord struct{ word, help string }

// completionNodes lists the program and every command, outer ones first.
func completionNodes(root *kong.Node) []completionNode {
	var nodes []completionNode
	var visit func(n *kong.Node, path string)
	visit = func(n *kong.Node, path string) {
		node := completionNode{path: path}
		for _, group := range n.AllFlags(true) {
			for _, flag := range group {
				node.flags = append(node.flags, completionWord{"--" + flag.Name, flag.Help})
			}
		}
		for _, child := range n.Children {
			if child.Type == kong.CommandNode && !child.Hidden {
				node.commands = append(node.commands, completionWord{child.Name, child.Help})
			}
		}
		nodes = append(nodes, node)
		for _, child := range n.Children {
			if child.Type == kong.CommandNode && !child.Hidden {
				visit(child, strings.TrimSpace(path+" "+child.Name))
			}
		}
	}
	visit(root, "")
	return nodes
}

// unquotable is what a word of help could do harm with inside single quotes of any of the shells.
var unquotable = regexp.MustCompile(`['\\\n]`)

func shellQuote(text string) string { return "'" + unquotable.ReplaceAllString(text, "") + "'" }

// completionScript is the text for one of the three shells. Each finds out which command the words before the cursor name
// and offers what may follow there: flags after a dash, else commands, else what the shell offers by itself.
func completionScript(shell string, nodes []completionNode) string {
	var b strings.Builder
	switch shell {
	case "zsh":
		zshCompletion(&b, nodes)
	case "fish":
		fishCompletion(&b, nodes)
	default:
		bashCompletion(&b, nodes)
	}
	return b.String()
}

// known are the patterns of a case statement that match a path and the next command in it.
func known(nodes []completionNode) string {
	var list []string
	for _, n := range nodes[1:] {
		list = append(list, shellQuote(n.path))
	}
	return strings.Join(list, " | ")
}

func words(list []completionWord) string {
	var all []string
	for _, w := range list {
		all = append(all, w.word)
	}
	return shellQuote(strings.Join(all, " "))
}

func bashCompletion(b *strings.Builder, nodes []completionNode) {
	fmt.Fprintf(b, `# bash completion for sallyport; made by: sallyport completion bash
_sallyport() {
	local cur=${COMP_WORDS[COMP_CWORD]} at= next i commands= flags=
	for ((i = 1; i < COMP_CWORD; i++)); do
		if [ "${COMP_WORDS[i]}" = -- ]; then return; fi
		next=${at:+$at }${COMP_WORDS[i]}
		case $next in
		%s) at=$next ;;
		esac
	done
	case $at in
`, known(nodes))
	for _, n := range nodes {
		fmt.Fprintf(b, "\t%s) commands=%s flags=%s ;;\n", shellQuote(n.path), words(n.commands), words(n.flags))
	}
	b.WriteString(`	esac
	case $cur in
	-*) COMPREPLY=($(compgen -W "$flags" -- "$cur")) ;;
	*) COMPREPLY=($(compgen -W "$commands" -- "$cur")) ;;
	esac
}
complete -o default -F _sallyport sallyport
`)
}

// described is a list of 'word:help' for zsh, where a colon in the word would end it.
func described(list []completionWord) string {
	var all []string
	for _, w := range list {
		all = append(all, shellQuote(strings.ReplaceAll(w.word, ":", "")+":"+w.help))
	}
	return strings.Join(all, " ")
}

func zshCompletion(b *strings.Builder, nodes []completionNode) {
	fmt.Fprintf(b, `#compdef sallyport
# zsh completion for sallyport; made by: sallyport completion zsh
_sallyport() {
	local at= next i
	local -a commands flags
	for ((i = 2; i < CURRENT; i++)); do
		if [[ ${words[i]} == -- ]]; then _files; return; fi
		next=${at:+$at }${words[i]}
		case $next in
		(%s) at=$next ;;
		esac
	done
	case $at in
`, known(nodes))
	for _, n := range nodes {
		fmt.Fprintf(b, "\t(%s) commands=(%s) flags=(%s) ;;\n", shellQuote(n.path), described(n.commands), described(n.flags))
	}
	b.WriteString(`	esac
	if [[ $PREFIX == -* ]]; then
		_describe -o option flags
	elif (( $#commands )); then
		_describe command commands
	else
		_files
	fi
}
if [[ ${funcstack[1]} == _sallyport ]]; then _sallyport "$@"; else compdef _sallyport sallyport; fi
`)
}

func fishCompletion(b *strings.Builder, nodes []completionNode) {
	var all []string
	for _, n := range nodes[1:] {
		all = append(all, shellQuote(n.path))
	}
	fmt.Fprintf(b, `# fish completion for sallyport; made by: sallyport completion fish
function __sallyport_at
	set -l at ''
	for word in (commandline -opc)[2..-1]
		test "$word" = --; and return 1
		set -l next (string trim -- "$at $word")
		contains -- $next %s; and set at $next
	end
	test "$at" = "$argv[1]"
end
complete -c sallyport -e
`, strings.Join(all, " "))
	for _, n := range nodes {
		at := `-n "__sallyport_at ` + shellQuote(n.path) + `"`
		for _, w := range n.commands {
			fmt.Fprintf(b, "complete -c sallyport -f %s -a %s -d %s\n", at, shellQuote(w.word), shellQuote(w.help))
		}
		for _, w := range n.flags {
			fmt.Fprintf(b, "complete -c sallyport %s -l %s -d %s\n", at, strings.TrimPrefix(w.word, "--"), shellQuote(w.help))
		}
	}
}
