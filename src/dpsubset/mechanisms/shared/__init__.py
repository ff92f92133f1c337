"""Code that several mechanisms share.

What is made of `base.Data` is private; the rest is public.
"""
