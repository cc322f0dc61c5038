"""The functions of SGLang's kernel package that its scheduler calls on a CPU, in plain torch."""
