package registry_test

import (
	"fmt"

	"github.com/sallyport-dev/sallyport/registry"
)

func ExampleParseSkillMD() {
	md := registry.ParseSkillMD([]byte("---\nname: PDF Tools\ndescription: Use when: somebody sends a PDF\n---\n# How\n"), "pdf-tools")
	fmt.Println(md.Name, "|", md.Description, "|", md.Usable, md.SpecClean)
	for _, p := range md.Problems {
		fmt.Println(p.Severity, p.Code, "line", p.Line)
	}
	// Output:
	// PDF Tools | Use when: somebody sends a PDF | true false
	// warning YAML_REPAIRED line 3
	// warning NAME_CHARACTERS line 2
	// warning NAME_NOT_DIRECTORY line 2
}

func ExampleComposeSkillMD() {
	fmt.Printf("%s", registry.ComposeSkillMD("pdf", `Reads "PDF": all of it`, "# How\n"))
	// Output:
	// ---
	// name: "pdf"
	// description: "Reads \"PDF\": all of it"
	// ---
	// # How
}
