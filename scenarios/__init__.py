"""What is asked: operations, plans, prompts, environments, capabilities and the strategies that draw them."""
